import { countContainers, deleteContainers } from './compute/containers.ts'
import { countDays, dropDays, makeDays, trimOther } from './compute/days.ts'
import { countGauges, deleteGauges, GAUGES } from './compute/gauges.ts'
import { HISTORY } from './compute/history.ts'
import { type Batch, inRestedBatchesOf, type Job, type JobContext } from './job.ts'

const FIRST_AFTER_SECS = 90
/** For all steps together. */
const MAX_BATCHES = 400

const isHistoryOff = ({ config }: JobContext) => config.computeHistoryRetentionDays === 0

/** The steps of a pass. Partitions come first: until they exist, rows gather in the default partition. */
function steps(context: JobContext): (() => Promise<Batch>)[] {
  const gauges = GAUGES.map((one) => deleteGauges(one, context))
  if (isHistoryOff(context)) return gauges
  return [
    ...HISTORY.map((table) => makeDays(table, context)),
    ...gauges,
    ...HISTORY.flatMap((table) => [dropDays(table, context), trimOther(table, context)]),
    deleteContainers(context),
  ]
}

/**
 * Deletes samples of containers that are no longer sampled and heartbeats of silent nodes, also with history off;
 * creates the partitions of the next days of history and drops expired ones (docs/contract.md#retention). With 0 days
 * of history the history is not touched.
 */
export const computeRetention: Job = {
  name: 'compute-retention',
  firstAfterSecs: FIRST_AFTER_SECS,
  everySecs: (config) => config.computeRetentionIntervalSecs,

  run: (context) => inRestedBatchesOf(context.signal, MAX_BATCHES, steps(context)),

  async count(context) {
    const gauges = GAUGES.map((one) => countGauges(one, context))
    const history = isHistoryOff(context)
      ? []
      : [...HISTORY.map((table) => countDays(table, context)), countContainers(context)]
    return (await Promise.all([...gauges, ...history])).reduce((sum, rows) => sum + rows)
  },
}
