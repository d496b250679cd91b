/** What a checkout gives to the builder: the files that `.dockerignore` lets through. */
import { cpSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'

/** Whether a path, relative to the checkout, reaches the builder. The last pattern that fits it or a folder above it decides. */
export function admits(ignore: string): (path: string) => boolean {
  const patterns = ignore
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => ({ isException: line.startsWith('!'), pattern: line.replace(/^!/, '') }))
  for (const { pattern } of patterns)
    if (/[*?[\\]/.test(pattern.replace(/^\*$/, ''))) throw new Error(`not understood: ${pattern}`)
  return (path) => {
    let isAdmitted = true
    for (const { isException, pattern } of patterns)
      if (pattern === '*' || path === pattern || path.startsWith(`${pattern}/`)) isAdmitted = isException
    return isAdmitted
  }
}

/** Copies what the builder gets of a checkout. Not `node_modules` and `dist` where they are, which would take long to look through. */
export function copyContext(checkout: string, into: string): void {
  const isAdmitted = admits(readFileSync(join(checkout, '.dockerignore'), 'utf8'))
  const exceptions = readFileSync(join(checkout, '.dockerignore'), 'utf8').match(/(?<=^!).+/gm) ?? []
  for (const path of exceptions)
    cpSync(join(checkout, path), join(into, path), {
      recursive: true,
      filter: (source) => isAdmitted(relative(checkout, source)),
    })
}
