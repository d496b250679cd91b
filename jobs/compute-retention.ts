import { countContainers, forgetContainers } from './compute/containers.ts'
import { countDays, dropDays, makeDays, trimOther } from './compute/days.ts'
import { countGauges, deleteGauges, GAUGES } from './compute/gauges.ts'
import { HISTORY } from './compute/history.ts'
import { type Batch, inRestedBatches, type Job, type JobContext } from './job.ts'

const FIRST_AFTER_SECS = 90
/** Of all steps together. */
const MAX_BATCHES = 400

const isHistoryOff = ({ config }: JobContext) => config.computeHistoryRetentionDays === 0

/** What a pass does, one after the other. Days come first: until they are there, rows gather where no day takes them. */
function steps(context: JobContext): (() => Promise<Batch>)[] {
  const gauges = GAUGES.map((one) => deleteGauges(one, context))
  if (isHistoryOff(context)) return gauges
  return [
    ...HISTORY.map((table) => makeDays(table, context)),
    ...gauges,
    ...HISTORY.flatMap((table) => [dropDays(table, context), trimOther(table, context)]),
    forgetContainers(context),
  ]
}

/**
 * Forgets samples of containers that are no longer sampled and heartbeats of nodes that beat no more, with history off, too; makes the days
 * of the history ahead and drops those that are over (interop-profiling 3.5). With 0 days of history nothing of it is touched.
 */
export const computeRetention: Job = {
  name: 'compute-retention',
  firstAfterSecs: FIRST_AFTER_SECS,
  everySecs: (config) => config.computeRetentionIntervalSecs,

  run(context) {
    const [first, ...rest] = steps(context)
    let step = first!
    return inRestedBatches(context.signal, MAX_BATCHES, async () => {
      const batch = await step()
      const next = batch.isHeld && batch.isLast ? rest.shift() : undefined
      step = next ?? step
      return next === undefined ? batch : { ...batch, isLast: false }
    })
  },

  async count(context) {
    const gauges = GAUGES.map((one) => countGauges(one, context))
    const history = isHistoryOff(context)
      ? []
      : [...HISTORY.map((table) => countDays(table, context)), countContainers(context)]
    return (await Promise.all([...gauges, ...history])).reduce((sum, rows) => sum + rows)
  },
}
