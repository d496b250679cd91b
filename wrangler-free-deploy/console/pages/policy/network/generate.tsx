/** The first step: policies that allow the observed flows. */
import { addressOf } from '../../../api/client.ts'
import { type Reading, useRead } from '../../../api/query.ts'
import { CopyAs } from '../../../parts/copy-as.tsx'
import { Empty, Loading, Stale } from '../../../parts/states.tsx'
import { usePlace } from '../../../place.ts'
import { Check, type Choice, Field, Select, useChoice } from '../controls.tsx'
import { Refused } from '../refused.tsx'
import { type Target, targetText } from '../target.ts'
import { RemarkList } from '../text/remark-list.tsx'

const FORMATS: readonly Choice[] = [
  { value: 'kubernetes', label: 'Kubernetes NetworkPolicy' },
  { value: 'cilium', label: 'CiliumNetworkPolicy' },
]
const DIRECTIONS: readonly Choice[] = [
  { value: 'both', label: 'Ingress and egress' },
  { value: 'ingress', label: 'Ingress only' },
  { value: 'egress', label: 'Egress only' },
]
const CIDRS: readonly Choice[] = [
  { value: 'exact', label: 'One by one' },
  { value: '24', label: 'By network (/24, IPv6 /64)' },
]
/**
 * Not `since`: a window of minutes, left over from another page, would yield a policy that denies nearly everything.
 */
const MADE_SINCE = 'made_since'
const SINCES: readonly Choice[] = [
  { value: '', label: 'All that is kept' },
  { value: '7d', label: 'New flows of 7 days' },
  { value: '14d', label: 'New flows of 14 days' },
  { value: '30d', label: 'New flows of 30 days' },
  { value: '90d', label: 'New flows of 90 days' },
]
const DEFAULT_MIN_DAYS = '7'

interface MadeQuery {
  readonly format: 'kubernetes' | 'cilium'
  readonly direction: 'both' | 'ingress' | 'egress'
  readonly cidr: 'exact' | '24'
  readonly since?: string
  readonly min_days?: number
  readonly acknowledgePartial?: string
}

function useMadeQuery(): MadeQuery {
  const { query } = usePlace()
  const since = useChoice(MADE_SINCE, SINCES)
  const minDays = query.get('min_days')
  return {
    format: useChoice('format', FORMATS) as MadeQuery['format'],
    direction: useChoice('direction', DIRECTIONS) as MadeQuery['direction'],
    cidr: useChoice('cidr', CIDRS) as MadeQuery['cidr'],
    ...(since !== '' && { since }),
    ...(minDays !== null && { min_days: Number(minDays) }),
    ...(query.get('acknowledgePartial') === 'true' && { acknowledgePartial: 'true' }),
  }
}

/** The generated YAML for the target, with the parameters of the address. It is read once, not polled. */
export function useGenerated({ namespace, workload }: Target): Reading<string> {
  const query = useMadeQuery()
  const one = useRead(
    '/workloads/{namespace}/{kind}/{name}/networkpolicy',
    { path: workload ?? { namespace: '', kind: '', name: '' }, query },
    { enabled: workload !== null, pollMs: 0 },
  )
  const all = useRead(
    '/namespaces/{namespace}/networkpolicies',
    { path: { namespace: namespace ?? '' }, query },
    { enabled: workload === null && namespace !== null, pollMs: 0 },
  )
  // The OpenAPI types describe the JSON answer of these routes; this reads their YAML.
  return (workload === null ? all : one) as unknown as Reading<string>
}

export function Generate({ target, reading, onLine }: GenerateProps) {
  const query = useMadeQuery()
  const isChosen = target.namespace !== null
  return (
    <section class="section" aria-labelledby="generate">
      <div class="step-head">
        <h2 id="generate">1. Generate</h2>
        {isChosen && <CopyAs ctb={ctbArguments(target, query)} url={addressOfMade(target, query)} />}
      </div>
      {!isChosen && (
        <Empty title="Choose a namespace">
          Its policies, or that of one of its workloads, are made from the connections that were seen. You can also try
          a policy that you paste below.
        </Empty>
      )}
      {isChosen && (
        <>
          <Controls />
          <Made isBounded={query.since !== undefined} reading={reading} onLine={onLine} />
        </>
      )}
    </section>
  )
}

function Controls() {
  const isAcknowledged = usePlace().query.get('acknowledgePartial') === 'true'
  return (
    <div class="policy-controls">
      <Select name="format" label="Format" choices={FORMATS} />
      <Select name="direction" label="Isolates" choices={DIRECTIONS} />
      <Select name={MADE_SINCE} label="Made from" choices={SINCES} />
      <Select name="cidr" label="External addresses" choices={CIDRS} />
      <Field
        name="min_days"
        label="Days observed, at least"
        fallback={DEFAULT_MIN_DAYS}
        pattern="\d{1,2}|[12]\d\d|3[0-5]\d|36[0-5]"
        inputMode="numeric"
      />
      {isAcknowledged && <Check name="acknowledgePartial" label="Also from what is not complete" />}
    </div>
  )
}

interface GenerateProps {
  readonly target: Target
  readonly reading: Reading<string>
  readonly onLine: (line: number) => void
}

interface MadeProps {
  /** Whether it is generated from the newest edges only. */
  readonly isBounded: boolean
  readonly reading: Reading<string>
  readonly onLine: (line: number) => void
}

function Made({ isBounded, reading, onLine }: MadeProps) {
  const { data, error, refetch } = reading
  if (data === undefined) return error === null ? <Loading /> : <Refused error={error} retry={refetch} />
  return (
    <>
      {error !== null && <Stale reading={reading} />}
      <RemarkList
        text={data}
        nothing={`Nothing that was ${isBounded ? 'new in that time' : 'seen'} is left out, and all that it is made from is complete.`}
        onLine={onLine}
      />
      <p class="faint">
        It allows what was seen; where it allows more, its notes say so. {isBounded && LONG_LIVED} No broker can know
        whether the network plugin enforces policies, which labels namespaces have beside their name, and which policies
        are in the cluster already. UDP to an address with which a pod had another connection before may be missing, and
        so may a connection that an earlier pod with the same address had, too.
      </p>
    </>
  )
}

const LONG_LIVED =
  'A living pod does not report a connection to the same peer again, so one that was opened before may be missing.'

function addressOfMade({ namespace, workload }: Target, query: MadeQuery): string {
  return workload === null
    ? addressOf('/namespaces/{namespace}/networkpolicies', { path: { namespace: namespace! }, query })
    : addressOf('/workloads/{namespace}/{kind}/{name}/networkpolicy', { path: workload, query })
}

function ctbArguments(target: Target, query: MadeQuery): string[] {
  const { format, direction, cidr, since, min_days, acknowledgePartial } = query
  return [
    ...['policy', 'generate'],
    ...(target.workload === null ? ['-n', target.namespace!] : [targetText(target)]),
    ...(format === 'kubernetes' ? [] : ['--format', format]),
    ...(direction === 'both' ? [] : ['--direction', direction]),
    ...(cidr === 'exact' ? [] : ['--cidr', cidr]),
    ...(since === undefined ? [] : ['--since', since]),
    ...(min_days === undefined ? [] : ['--min-days', `${min_days}`]),
    ...(acknowledgePartial === undefined ? [] : ['--acknowledge-partial']),
  ]
}
