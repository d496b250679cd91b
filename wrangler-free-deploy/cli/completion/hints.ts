/** Values that the broker knows, for a word that is being typed. */
import { flagName, parametersOf } from '../api/parameters.ts'
import { ask } from '../connection/ask.ts'
import { type ConnectionFlags, isForwarded } from '../connection/place.ts'
import type { CliContext } from '../context.ts'
import type { Line } from './line.ts'

/** A person waits for it at a key. */
const LIMIT_MS = 1_000
/** kubectl asks its API server twice before the broker is asked. */
const LIMIT_THROUGH_KUBECTL_MS = 3_000
/** An argument may have several forms, such as `DIGEST|NAMESPACE/KIND/NAME`. */
const FIELD_BY_FORM: Readonly<Record<string, string>> = {
  'NAMESPACE/KIND/NAME': 'workload',
  NAMESPACE: 'namespace',
  NODE: 'node',
}

/** Nothing, whatever is wrong: a message would stand in the middle of the line. */
export async function hintsOf(
  context: CliContext,
  { given, flag, placeholder, isOfFlows }: Line,
  prefix: string,
): Promise<string[]> {
  const field = flag === null ? fieldOfArgument(placeholder ?? '') : fieldOfFlag(flag, isOfFlows)
  if (field === undefined) return []
  const flags: ConnectionFlags = given
  // A copy would read stdin, which Node opens then.
  const silent: CliContext = Object.create(context, { say: { value: () => {} } })
  try {
    const limitMs = isForwarded(context, flags) ? LIMIT_THROUGH_KUBECTL_MS : LIMIT_MS
    const bytes = await ask(silent, flags, {
      ...{ method: 'GET', path: ['flows', 'hints'], query: { field, prefix } },
      ...{ expects: 'application/json', signal: AbortSignal.timeout(limitMs) },
    })
    const { values } = JSON.parse(bytes.toString()) as { values: unknown[] }
    return values.map(String)
  } catch {
    return []
  }
}

/** Elsewhere a flag of the same name may take another form, as `--workload NAME`. */
const EVERYWHERE = ['namespace', 'node']

/** Flags of flows have the names of the filters, also for one side. */
function fieldOfFlag(flag: string, isOfFlows: boolean): string | undefined {
  const name = isOfFlows ? flag.replace(/^(?:from|to)(?=[A-Z])/, '').toLowerCase() : flag
  const fields = parametersOf('/flows/hints').field!.values!
  return fields.find((one) => flagName(one).toLowerCase() === name && (isOfFlows || EVERYWHERE.includes(one)))
}

const fieldOfArgument = (placeholder: string): string | undefined =>
  placeholder
    .split('|')
    .map((form) => FIELD_BY_FORM[form])
    .find((field) => field !== undefined)
