/** The seccomp profile of a workload as a resource, with syscalls that the user adds or removes. */
import { useEffect, useState } from 'preact/hooks'
import { type Answer, addressOf, type Params, send } from '../../../api/client.ts'
import { type Reading, useRead } from '../../../api/query.ts'
import { tokenSource } from '../../../api/session.ts'
import { CopyButton, shellWord } from '../../../parts/copy-as.tsx'
import { Shown } from '../../../parts/states.tsx'
import { Badge, Count, type WorkloadName } from '../../../parts/text.tsx'
import { Ago } from '../../../parts/time.tsx'
import { href, usePlace } from '../../../place.ts'
import { Check, type Choice, Field, Select, useChoice } from '../controls.tsx'
import { fileNameOf, type Target, targetText } from '../target.ts'
import { GeneratedText } from './generated-text.tsx'

const PATH = '/seccomp/profiles/{namespace}/{kind}/{name}/export'
const ACTIONS: readonly Choice[] = [
  { value: 'SCMP_ACT_LOG', label: 'Log it' },
  { value: 'SCMP_ACT_ERRNO', label: 'Refuse it with an error' },
  { value: 'SCMP_ACT_KILL', label: 'Kill the thread' },
  { value: 'SCMP_ACT_KILL_PROCESS', label: 'Kill the process' },
]
const FORMATS: readonly Choice[] = [
  { value: 'yaml', label: 'YAML' },
  { value: 'json', label: 'JSON' },
]

type Query = NonNullable<Params<typeof PATH>['query']>
interface Edits {
  readonly add: readonly string[]
  readonly remove: readonly string[]
}

export function Seccomp({ target, workload }: { target: Target; workload: WorkloadName }) {
  const { query: given } = usePlace()
  const defaultAction = useChoice('defaultAction', ACTIONS) as NonNullable<Query['defaultAction']>
  const format = useChoice('format', FORMATS) as 'yaml' | 'json'
  const name = given.get('name') ?? ''
  const query: Query = {
    ...{ defaultAction, format },
    ...(name !== '' && { name }),
    ...(given.get('acknowledgePartial') === 'true' && { acknowledgePartial: 'true' }),
  }
  const edits: Edits = { add: namesOf(given.get('add')), remove: namesOf(given.get('remove')) }
  const isEdited = edits.add.length + edits.remove.length > 0
  const observed = useRead('/seccomp/profiles/{namespace}/{kind}/{name}', { path: workload }, { pollMs: 0 })
  const plain = useRead(PATH, { path: workload, query }, { pollMs: 0, enabled: !isEdited }) as Reading<unknown>
  const edited = useEdited(workload, query, edits, isEdited)
  const reading = asText(isEdited ? edited : plain)
  return (
    <section class="section" aria-labelledby="seccomp">
      <h2 id="seccomp">Seccomp profile</h2>
      <p class="lead">It allows the syscalls that were observed, and says what happens to any other one.</p>
      <Shown reading={observed}>{(profile) => <Capture profile={profile} />}</Shown>
      <div class="policy-controls">
        <Select name="defaultAction" label="A syscall that is not listed" choices={ACTIONS} />
        <Select name="format" label="Notation" choices={FORMATS} />
        <Field name="name" label="Name" placeholder={observed.data?.suggestedName ?? ''} />
        <Field name="add" label="Also allow" placeholder="io_uring_setup, …" />
        <Field name="remove" label="Do not allow" placeholder="ptrace, …" />
        {given.get('acknowledgePartial') === 'true' && (
          <Check name="acknowledgePartial" label="Also from a partial capture" />
        )}
      </div>
      {observed.error === null && (
        <GeneratedText
          reading={reading}
          label={`Seccomp profile as ${format.toUpperCase()}`}
          fileName={fileNameOf(target, 'seccomp', format)}
          commands={
            isEdited ? {} : { ctb: ctbArguments(target, query), url: addressOf(PATH, { path: workload, query }) }
          }
          nothing="The capture is complete: every pod that contributed was recorded in full."
          tools={isEdited && <CopyButton label="Copy as curl" text={curlText(workload, query, edits)} />}
        >
          <p class="faint">
            Edits are stored nowhere. The profile has observed syscalls only: rarer syscalls, such as those of error
            handling, may not have happened yet.
          </p>
        </GeneratedText>
      )}
    </section>
  )
}

function Capture({ profile }: { profile: Answer<'/seccomp/profiles/{namespace}/{kind}/{name}'> }) {
  const { namespace, kind, name, capture, syscallCount, updatedAt, crCount } = profile
  return (
    <p>
      <Badge tone={capture.complete ? 'good' : 'warn'}>
        {capture.complete ? 'capture is complete' : `capture is partial: ${capture.level}`}
      </Badge>{' '}
      <Count value={syscallCount} to={href(['workload', namespace, kind, name], { tab: 'seccomp' })} /> syscalls,
      changed <Ago at={updatedAt} />
      {!capture.complete && (
        <>
          , {capture.incomplete} of {capture.pods.length + capture.more} pods below full
        </>
      )}
      {crCount > 0 && `, used by ${crCount} ${crCount === 1 ? 'resource' : 'resources'}`}
    </p>
  )
}

const namesOf = (text: string | null): string[] => (text ?? '').split(/[\s,]+/).filter((one) => one !== '')

/** The client has parsed JSON already. */
function asText(reading: Reading<unknown>): Reading<string> {
  const { data } = reading
  const text = data === undefined || typeof data === 'string' ? data : `${JSON.stringify(data, null, 2)}\n`
  return { ...reading, data: text }
}

/** The profile with edits, from a POST that stores nothing. */
function useEdited(workload: WorkloadName, query: Query, edits: Edits, isEnabled: boolean): Reading<unknown> {
  const [state, setState] = useState<{ data: unknown; error: Error | null; at: number }>(NOT_ASKED)
  const [asked, setAsked] = useState(0)
  const body = { ...query, add: [...edits.add], remove: [...edits.remove] }
  const key = JSON.stringify([workload, body])
  useEffect(() => {
    if (!isEnabled) return
    let isCurrent = true
    setState(NOT_ASKED)
    send(PATH, { path: workload } as never, body as never).then(
      (data) => isCurrent && setState({ data, error: null, at: Date.now() }),
      (error: Error) => isCurrent && setState({ data: undefined, error, at: 0 }),
    )
    return () => {
      isCurrent = false
    }
  }, [key, isEnabled, asked])
  const { data, error, at } = state
  const isFetching = data === undefined && error === null
  return { data, error, isFetching, isPolled: false, dataUpdatedAt: at, refetch: () => setAsked((times) => times + 1) }
}

const NOT_ASKED = { data: undefined, error: null, at: 0 }

function ctbArguments(target: Target, { defaultAction, format, name, acknowledgePartial }: Query): string[] {
  return [
    ...['seccomp', 'export', targetText(target)],
    ...(name ? ['--name', name] : []),
    ...(defaultAction && defaultAction !== 'SCMP_ACT_LOG' ? ['--default-action', defaultAction] : []),
    ...(format === 'json' ? ['--format', 'json'] : []),
    ...(acknowledgePartial ? ['--acknowledge-partial'] : []),
  ]
}

function curlText(workload: WorkloadName, query: Query, edits: Edits): string {
  const token = tokenSource === 'browser' ? ['-H', '"Authorization: Bearer $CTB_TOKEN"'] : []
  const body = shellWord(JSON.stringify({ ...query, ...edits }))
  const url = shellWord(addressOf(PATH, { path: workload }))
  return ['curl', '-s', ...token, '-H', shellWord('content-type: application/json'), '-d', body, url].join(' ')
}
