import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseEnv } from 'node:util'
import { ConfigError } from '../errors.ts'

/**
 * The environment of the process, completed by the file `.env` of the working directory: a variable of the process
 * wins. Nothing of the file is logged, and no child process inherits it.
 * @throws ConfigError when the file is there and cannot be read
 */
export function environment(): NodeJS.ProcessEnv {
  // Tests run the sources: a developer's own file must not change their results.
  return import.meta.url.endsWith('.ts') ? process.env : withEnvFile(process.env, process.cwd())
}

export function withEnvFile(env: NodeJS.ProcessEnv, folder: string): NodeJS.ProcessEnv {
  const path = join(folder, '.env')
  try {
    return { ...parseEnv(readFileSync(path, 'utf8')), ...env }
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    // A folder of that name belongs to another tool, for instance a virtual environment of Python.
    if (code === 'ENOENT' || code === 'EISDIR') return env
    throw new ConfigError(`${path} cannot be read (${code})`)
  }
}
