import { existsSync, mkdirSync, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'

/**
 * Makes a folder and those above it. Not `mkdirSync` with `recursive`: of Node 20 that never returns where a folder is there and refuses
 * newcomers as if it were not, as /proc does.
 */
export function makeFolder(path: string): void {
  try {
    mkdirSync(path)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'EEXIST' && statSync(path).isDirectory()) return
    const parent = dirname(resolve(path))
    if (code !== 'ENOENT' || existsSync(parent)) throw error
    makeFolder(parent)
    makeFolder(path)
  }
}
