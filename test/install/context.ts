/** The files of a checkout that `.dockerignore` lets through to the builder. */
import { cpSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'

/**
 * Whether a path, relative to the checkout, reaches the builder. The last pattern that matches it or a folder above it
 * decides.
 */
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

/** Copies the files for the builder, without searching `node_modules` and `dist`, which would take long. */
export function copyContext(checkout: string, into: string): void {
  const isAdmitted = admits(readFileSync(join(checkout, '.dockerignore'), 'utf8'))
  const exceptions = readFileSync(join(checkout, '.dockerignore'), 'utf8').match(/(?<=^!).+/gm) ?? []
  for (const path of exceptions)
    cpSync(join(checkout, path), join(into, path), {
      recursive: true,
      filter: (source) => isAdmitted(relative(checkout, source)),
    })
}
