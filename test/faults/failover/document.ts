/** The files and commands in the section about Patroni of docs/install.md. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { load } from 'js-yaml'
import { blocksOf } from '../../install/document.ts'

const PAGE = fileURLToPath(new URL('../../../docs/install.md', import.meta.url))
const SECTION = 'Patroni'

/** Names and addresses of the document. */
export const DOCUMENT = {
  servers: ['10.0.0.11:5432', '10.0.0.12:5432'],
  proxies: '10.0.0.10',
  haproxy: '10.0.0.10:5000',
  pgbouncer: '10.0.0.10:6432',
  users: '/etc/pgbouncer/userlist.txt',
  password: 'PASSWORD',
  oldDatabase: 'db.example.com/broker',
} as const

/** The blocks in that language, with some of their text replaced. Each must occur. */
export function fromDocument(language: string, replaced: readonly (readonly [string, string])[]): string {
  const blocks = blocksOf(readFileSync(PAGE, 'utf8')).filter(
    (one) => one.section === SECTION && one.language === language,
  )
  const shown = blocks.map((block) => `${block.text}\n`).join('')
  return replaced.reduce((text, [from, to]) => {
    assert.ok(text.includes(from), `docs/install.md, ${SECTION}, ${language}: ${from}`)
    return text.replaceAll(from, to)
  }, shown)
}

/** The dynamic configuration of Patroni. */
export const patroniSettings = () => load(fromDocument('yaml', [])) as { ttl: number }
