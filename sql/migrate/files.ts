import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, sep } from 'node:path'
import { fileURLToPath } from 'node:url'

export interface MigrationFile {
  version: number
  /** File name without `.sql`, for instance `0001_pods`. */
  name: string
  text: string
  /** Marked `-- no-transaction` on the first line: one statement that PostgreSQL refuses inside a transaction. */
  isAlone: boolean
}

export interface FunctionFile {
  /** Path below `functions/`, for instance `pods/upsert_pods.sql`. */
  file: string
  text: string
}

export interface FunctionFiles {
  /** SHA-256 of paths and contents, hexadecimal. */
  hash: string
  /** In the order of their paths, which does not matter to PostgreSQL: see `applyFunctions`. */
  files: FunctionFile[]
}

/** The schema of a release. */
export interface Schema {
  migrations: MigrationFile[]
  functions: FunctionFiles
  /** The newest of the migrations, 0 without any. */
  version: number
}

/** The parent folder, both in the sources and in dist. */
export const SQL_FOLDER = dirname(dirname(fileURLToPath(import.meta.url)))

const FILE_NAME = /^(\d{4})_[a-z0-9_]+\.sql$/

/**
 * The files of `<folder>/migrations` by version. Throws on other names than `NNNN_name.sql` and on a number used twice.
 */
function readMigrations(folder: string): MigrationFile[] {
  const migrations = sqlFiles(join(folder, 'migrations')).map(({ file, text }): MigrationFile => {
    const version = Number(FILE_NAME.exec(file)?.[1])
    if (!version) throw new Error(`migrations/${file}: the name must be NNNN_name.sql, in lower case, from 0001`)
    const isAlone = text.split('\n', 1)[0]!.includes('-- no-transaction')
    // The file runs again when the process dies between the statement and its record.
    if (isAlone && !/\bif\s+(not\s+)?exists\b/i.test(text))
      throw new Error(`migrations/${file}: without a transaction, "if [not] exists" is needed`)
    return { version, name: file.slice(0, -'.sql'.length), text, isAlone }
  })
  for (const [index, { version, name }] of migrations.entries()) {
    if (migrations[index - 1]?.version === version)
      throw new Error(`migrations/${name}.sql: another file has the number ${version}`)
  }
  return migrations
}

/** The newest version in the folder, 0 for an empty one. */
export function schemaVersion(folder: string = SQL_FOLDER): number {
  return newest(readMigrations(folder))
}

/** The names of all tables that migrations ever created, also of dropped ones. Throws as `readMigrations`. */
export const tableNames = (folder: string = SQL_FOLDER): string[] =>
  readMigrations(folder).flatMap(({ text }) =>
    [...text.matchAll(/^create table (?:if not exists )?(\w+)/gm)].map(([, name]) => name!),
  )

/** The files of a folder. Throws as `readMigrations`. */
export function readSchema(folder: string): Schema {
  const migrations = readMigrations(folder)
  return { migrations, functions: readFunctions(folder), version: newest(migrations) }
}

const newest = (migrations: readonly MigrationFile[]) => migrations.at(-1)?.version ?? 0

/** The files of `<folder>/functions` and of the folders in it. */
function readFunctions(folder: string): FunctionFiles {
  const files = sqlFiles(join(folder, 'functions'))
  const hash = createHash('sha256')
  for (const { file, text } of files) hash.update(`${file}\0${text}\0`)
  return { hash: hash.digest('hex'), files }
}

/** By path relative to the folder, with `/` on every platform. */
function sqlFiles(folder: string): { file: string; text: string }[] {
  if (!existsSync(folder)) return []
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.sql'))
    .map((file) => ({ file: file.split(sep).join('/'), text: readFileSync(join(folder, file), 'utf8') }))
    .sort((a, b) => (a.file < b.file ? -1 : 1))
}
