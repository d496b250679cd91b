/** A migrated database without any data. */
import { randomBytes } from 'node:crypto'
import { after } from 'node:test'
import { administer, withDatabase } from '../../support/server.ts'

const made = new Set<() => Promise<void>>()
after(async () => {
  for (const drop of made) await drop()
})

/** Its URL. It is dropped at the end of the test file; end brokers before. */
export async function emptyDatabase(): Promise<string> {
  const { BROKER_TEST_URL: url, BROKER_TEST_TEMPLATE: template } = process.env
  if (!url || !template) throw new Error('run these tests with `npm run test:console` or `npm test <file>`')
  const name = `${template}_empty_${randomBytes(4).toString('hex')}`
  await administer(url, `create database ${name} template ${template} strategy file_copy`)
  made.add(() => administer(url, `drop database if exists ${name} with (force)`))
  return withDatabase(url, name)
}
