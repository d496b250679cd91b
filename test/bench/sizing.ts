/**
 * `npm run sizing`: measures bytes and rates of everything that is posted, and writes docs/sizing.md from them. Takes
 * some minutes and Linux. Options: `--page` writes the page from the figures of the last time; `--simulate` runs ten
 * minutes (`--minutes 10`) of a large cluster with little data, and adds the outcome to the page.
 */
import { parseArgs } from 'node:util'
import { measure } from './sizing/measure.ts'
import { readMeasured, writeMeasured } from './sizing/measured.ts'
import { writePage } from './sizing/page.ts'
import { simulate } from './sizing/simulate.ts'

const { values: options } = parseArgs({
  options: { page: { type: 'boolean' }, simulate: { type: 'boolean' }, minutes: { type: 'string', default: '10' } },
})
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1))
const print = (line: string) => process.stdout.write(`${line}\n`)

if (options.simulate) {
  const measured = readMeasured()
  const simulation = await simulate(measured, Number(options.minutes), print)
  print(JSON.stringify(simulation, null, 2))
  writeMeasured({ ...measured, simulation })
} else if (!options.page) writeMeasured({ ...(await measure()), simulation: readMeasured().simulation })
writePage()
