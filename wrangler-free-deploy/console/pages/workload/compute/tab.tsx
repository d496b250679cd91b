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
import { containersOfPods, type LatestContainer } from './waits.ts'

const LATEST = '/compute/latest'

/** Names of pods in the profile: the first pods, and the pods of its first containers. */
function podNamesOf({ workload, dimensions }: Profile): ReadonlySet<string> {
  return new Set([...workload.pods.names, ...dimensions.compute.containers.map(({ pod }) => pod)])
}

export default function ComputeTab({ workload, profile }: TabProps) {
  const { namespace } = workload
  const latest = useRead(LATEST, { query: { namespace } })
  const names = podNamesOf(profile)
  const asked = usePlace().query.get('pod_uid')
  return (
    <>
      <Shown reading={latest}>
        {({ containers, nodes }) => {
          const own = containersOfPods(containers, names)
          const chosen = asked ?? own[0]?.pod_uid
          const node = own.find(({ pod_uid }) => pod_uid === chosen)?.node
          return (
            <>
              <Findings workload={workload} pods={names} />
              <section class="section">
                <h2>Over time</h2>
                <PodChoice containers={own} chosen={chosen} profile={profile} known={names.size} />
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
                containers={own}
                commands={{ ctb: ['usage', '-n', namespace], url: addressOf(LATEST, { query: { namespace } }) }}
              />
              {node !== undefined && (
                <Contention
                  workload={workload}
                  containers={own}
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
  known,
}: {
  containers: readonly LatestContainer[]
  chosen: string | undefined
  profile: Profile
  known: number
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
      {workload.pods.live > known && (
        <span class="faint">
          {known} of {workload.pods.live} live pods can be chosen.
        </span>
      )}
    </div>
  )
}
