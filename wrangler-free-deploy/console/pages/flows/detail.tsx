/** All stored fields of one flow, in a panel beside the list. */
import type { ComponentChildren } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { useRead } from '../../api/query.ts'
import { Empty, Shown } from '../../parts/states.tsx'
import { Time } from '../../parts/time.tsx'
import { go, href, hrefWith } from '../../place.ts'
import { linkId, Verdict } from './columns.tsx'
import type { Flow, Side, WholeFlow } from './flow.ts'
import { flowsOf, SideLink, sidesOf, workloadOf } from './side.tsx'
import {
  attributionText,
  causeText,
  NOT_KNOWN,
  nextMicrosecond,
  retriesText,
  seenByText,
  verdictText,
} from './words.ts'

/** Limit for the flows that share the timestamp of the wanted one. */
const SAME_TIME = 500

interface DetailProps {
  readonly uuid: string
  readonly at: string
  /** The row of the list, if it is loaded. */
  readonly row: Flow | undefined
}

export function Detail({ uuid, at, row }: DetailProps) {
  const heading = useRef<HTMLHeadingElement>(null)
  const shown = useRef<string | null>(null)
  const close = () => {
    go(hrefWith({ flow: null, at: null }))
    document.getElementById(linkId({ uuid, time_stamp: at }))?.focus()
  }
  useEffect(() => {
    // If the flow was in the address from the start, the page stays at its top.
    if (shown.current !== null || document.activeElement !== document.body) heading.current?.focus()
    shown.current = uuid
    const onKey = (event: KeyboardEvent) => {
      if (event.key === 'Escape' && !event.defaultPrevented) close()
    }
    document.addEventListener('keydown', onKey)
    return () => document.removeEventListener('keydown', onKey)
  }, [uuid, at])
  const { pod_namespace: namespace = null, pod_name: name = null } = row ?? {}
  const pod = namespace === null || name === null ? {} : { pod: [`${namespace}/${name}`] }
  const query = { ...pod, since: at, until: nextMicrosecond(at), limit: SAME_TIME }
  const reading = useRead('/flows', { query })
  return (
    <aside class="flow-detail" aria-label="The selected flow">
      <div class="flow-detail-head">
        <h2 tabIndex={-1} ref={heading}>
          One flow
        </h2>
        <button type="button" class="quiet" onClick={close}>
          Close
        </button>
      </div>
      <Shown reading={reading}>
        {({ items }) => {
          const flow = items.find((one) => one.uuid === uuid)
          return flow === undefined ? (
            <Empty title="This flow is not stored any more">
              It was deleted since, or the address of this page is not whole.
            </Empty>
          ) : (
            <Fields flow={flow as WholeFlow} />
          )
        }}
      </Shown>
    </aside>
  )
}

function Fields({ flow }: { flow: WholeFlow }) {
  const { from, to, isDirected } = sidesOf(flow)
  const isDropped = flow.decision === 'DROP'
  return (
    <>
      <dl class="pairs">
        <Pair name="First seen">
          <Time at={flow.time_stamp} />
          <p class="faint">A living pod reports a flow once, so later connections of the same kind are not listed.</p>
        </Pair>
        <Pair name="Verdict">
          <Verdict {...flow} />
          <p class="faint">{verdictText(flow)}</p>
        </Pair>
        {isDropped && <Pair name="Cause">{causeText(flow)}</Pair>}
        {(isDropped || flow.syn_retries !== null) && <Pair name="SYN sent again">{retriesText(flow)}</Pair>}
        <Pair name="Protocol">{flow.ip_protocol ?? NOT_KNOWN}</Pair>
        <Pair name="Seen by">{seenByText(flow)}</Pair>
      </dl>
      <SideFields title={isDirected ? 'From' : 'Pod'} side={from} />
      <SideFields title={isDirected ? 'To' : 'Peer'} side={to} />
      <section class="section">
        <h3>How the peer is known</h3>
        <dl class="pairs">
          <Pair name="Address">
            {flow.traffic_in_out_ip === null ? (
              NOT_KNOWN
            ) : (
              <a href={href(['flows'], { ip: flow.traffic_in_out_ip })}>{flow.traffic_in_out_ip}</a>
            )}
          </Pair>
          <Pair name="Attribution">{attributionText(flow)}</Pair>
          {flow.peer_kind !== null && (
            <Pair name="Attributed at">
              {flow.peer_resolved_at === null ? NOT_KNOWN : <Time at={flow.peer_resolved_at} />}
            </Pair>
          )}
          {flow.peer_kind === 'node' && (
            <Pair name="Pod on its network">{`${flow.peer_namespace ?? '?'}/${flow.peer_name ?? '?'}`}</Pair>
          )}
          {flow.peer_uid !== null && (
            <Pair name="Uid">
              <code>{flow.peer_uid}</code>
            </Pair>
          )}
          <Pair name="Flow">
            <code>{flow.uuid}</code>
          </Pair>
        </dl>
      </section>
    </>
  )
}

function Pair({ name, children }: { name: string; children: ComponentChildren }) {
  return (
    <>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </>
  )
}

const KINDS: Readonly<Record<string, string>> = {
  pod: 'a pod',
  service: 'a service',
  node: 'a node',
  external: 'a public address',
  unresolved: 'an address that nobody is known to have had',
}

function SideFields({ title, side }: { title: string; side: Side }) {
  const workload = workloadOf(side)
  const { kind, namespace, name, ip, port } = side
  const path = workload && [workload.namespace, workload.kind, workload.name]
  return (
    <section class="section">
      <h3>{title}</h3>
      <dl class="pairs">
        <Pair name="What it is">{KINDS[kind ?? ''] ?? NOT_KNOWN}</Pair>
        {kind === 'pod' && (
          <Pair name="Workload">
            {workload === null ? `${NOT_KNOWN}: it was not recorded` : <SideLink side={side} />}
          </Pair>
        )}
        {(kind === 'pod' || kind === 'service') && (
          <Pair name={kind === 'pod' ? 'Pod' : 'Service'}>
            {name === null ? NOT_KNOWN : <a href={flowsOf(side)}>{`${namespace ?? '?'}/${name}`}</a>}
          </Pair>
        )}
        <Pair name="Address">
          {ip === null ? NOT_KNOWN : <a href={href(['flows'], { ip })}>{ip}</a>}
          {port === null ? (
            ', port not known'
          ) : (
            <>
              , port <bdi>{port}</bdi>
            </>
          )}
        </Pair>
      </dl>
      {path && (
        <p class="flow-links">
          <a href={href(['workload', ...path], { tab: 'flows' })}>Its edges</a>
          <a href={href(['focus', ...path])}>Callers and callees</a>
          <a href={href(['policy', ...path])}>A policy that allows what was seen</a>
        </p>
      )}
    </section>
  )
}
