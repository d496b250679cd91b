import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'dotenv'
import { ConfigError } from './variables.ts'

/**
 * The environment of a program: that of the process, and where it says nothing the file `.env` of the working directory, if
 * there is one. Nothing of the file is logged, and no child process inherits it.
 * @throws ConfigError when the file is there and cannot be read
 */
export function environment(): NodeJS.ProcessEnv {
  // The tests run the sources: a developer's own file must not change what they find.
  return import.meta.url.endsWith('.ts') ? process.env : withEnvFile(process.env, process.cwd())
}

export function withEnvFile(env: NodeJS.ProcessEnv, folder: string): NodeJS.ProcessEnv {
  const path = join(folder, '.env')
  try {
    return { ...parse(readFileSync(path)), ...env }
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    // A folder of that name is somebody else's, for instance a virtual environment of Python.
    if (code === 'ENOENT' || code === 'EISDIR') return env
    throw new ConfigError(`${path} cannot be read (${code})`)
  }
}
