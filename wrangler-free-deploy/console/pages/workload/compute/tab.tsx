/** CPU and memory of a pod over time, its waits, and the sizing of the workload. */
import { addressOf } from '../../../api/client.ts'
import { useRead } from '../../../api/query.ts'
import { Empty, Shown } from '../../../parts/states.tsx'
import { go, hrefWith, usePlace } from '../../../place.ts'
import type { TabProps } from '../index.tsx'
import type { Profile } from '../words.ts'
import { Contention, Findings } from './contention.tsx'
import { HistoryCharts } from './history.tsx'
import { Latest } from './latest.tsx'
import { Sizing } from './sizing.tsx'
import type { LatestContainer } from './waits.ts'

const LATEST = '/compute/latest'
/** About 100 bytes each, compressed. */
const MAX_CONTAINERS = 500

export default function ComputeTab({ workload, profile }: TabProps) {
  const { namespace, kind, name } = workload
  const params = { query: { namespace, kind, workload: name, limit: MAX_CONTAINERS } }
  const latest = useRead(LATEST, params)
  const asked = usePlace().query.get('pod_uid')
  return (
    <>
      <Shown reading={latest}>
        {({ containers, nodes }) => {
          const chosen = asked ?? containers[0]?.pod_uid
          const node = containers.find(({ pod_uid }) => pod_uid === chosen)?.node
          const names = new Set([...profile.workload.pods.names, ...containers.map(({ pod_name }) => pod_name)])
          return (
            <>
              <Findings workload={workload} pods={names} isSampled={containers.length > 0} />
              <section class="section">
                <h2>Over time</h2>
                <PodChoice containers={containers} chosen={chosen} profile={profile} />
                {chosen === undefined ? (
                  <Empty title="No pod has a sample">
                    {profile.workload.pods.live === 0
                      ? 'No pod of it lives. The history of earlier pods is in the sizing below, as far as it is kept.'
                      : 'No agent samples CPU and memory of its pods.'}
                  </Empty>
                ) : (
                  <HistoryCharts key={chosen} podUid={chosen} />
                )}
              </section>
              <Latest
                containers={containers}
                commands={{
                  ctb: ['usage', '-n', namespace, '--kind', kind, '--workload', name],
                  url: addressOf(LATEST, params),
                }}
              />
              {node !== undefined && chosen !== undefined && (
                <Contention
                  containers={containers}
                  podUid={chosen}
                  node={node}
                  isProbed={nodes.find((one) => one.node === node)?.contention_loaded ?? null}
                />
              )}
            </>
          )
        }}
      </Shown>
      <Sizing workload={workload} />
    </>
  )
}

function PodChoice({
  containers,
  chosen,
  profile: { workload },
}: {
  containers: readonly LatestContainer[]
  chosen: string | undefined
  profile: Profile
}) {
  const pods = new Map(containers.map(({ pod_uid, pod_name, node }) => [pod_uid, `${pod_name} on ${node}`]))
  if (chosen === undefined) return null
  return (
    <div class="table-tools">
      <label class="field-line">
        Pod{' '}
        <select
          value={chosen}
          onChange={({ currentTarget }) => go(hrefWith({ pod_uid: currentTarget.value, container: null }))}
        >
          {!pods.has(chosen) && <option value={chosen}>{chosen} (not sampled now)</option>}
          {[...pods].map(([uid, text]) => (
            <option key={uid} value={uid}>
              {text}
            </option>
          ))}
        </select>
      </label>
      {workload.pods.live > pods.size && (
        <span class="faint">
          {pods.size} of {workload.pods.live} live pods can be chosen: those with a sample, and at most {MAX_CONTAINERS}{' '}
          containers.
        </span>
      )}
    </div>
  )
}
