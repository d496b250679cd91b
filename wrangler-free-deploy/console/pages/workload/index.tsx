/** The dossier of a workload. Each tab has its own address and loads only its own data. */
import type { ComponentType } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { addressOf } from '../../api/client.ts'
import { useRead } from '../../api/query.ts'
import { CopyAs } from '../../parts/copy-as.tsx'
import { Empty, Loading, NotLoaded, Shown } from '../../parts/states.tsx'
import { href, usePlace } from '../../place.ts'
import type { PageProps } from '../index.ts'
import { Posture, Title } from './head.tsx'
import { tabHref } from './links.ts'
import { isTab, type Named, TABS, type TabName, wholeName } from './name.ts'
import type { Profile } from './words.ts'
import './workload.css'

/** The broker computes a profile for each request from thousands of rows, so it is polled less often. */
const PROFILE_POLL_MS = 60_000

export interface TabProps {
  readonly workload: Named
  readonly profile: Profile
}

const LOADERS: Readonly<Record<TabName, () => Promise<{ default: ComponentType<TabProps> }>>> = {
  '': () => import('./overview/tab.tsx'),
  flows: () => import('./flows/tab.tsx'),
  vulnerabilities: () => import('./vulnerabilities/tab.tsx'),
  seccomp: () => import('./seccomp/tab.tsx'),
  runtime: () => import('./runtime/tab.tsx'),
  compute: () => import('./compute/tab.tsx'),
  trust: () => import('./trust/tab.tsx'),
  changes: () => import('./changes/tab.tsx'),
}

export default function WorkloadPage({ rest: [namespace, kind, name] }: PageProps) {
  if (namespace === undefined || kind === undefined || name === undefined)
    return (
      <>
        <h1>Workload</h1>
        <Empty title="The address names no workload">
          It ends with namespace, kind and name. <a href={href(['workloads'])}>All workloads</a>
        </Empty>
      </>
    )
  return <Dossier key={`${namespace}/${kind}/${name}`} namespace={namespace} kind={kind} name={name} />
}

function Dossier(workload: Named) {
  const { namespace, kind, name } = workload
  const params = { path: { namespace, kind, name } }
  const reading = useRead('/workloads/{namespace}/{kind}/{name}/profile', params, { pollMs: PROFILE_POLL_MS })
  const asked = usePlace().query.get('tab') ?? ''
  const tab = isTab(asked) ? asked : ''
  return (
    <div class="dossier">
      <Title {...workload} />
      <Shown reading={reading}>
        {(profile) => (
          <>
            <Posture profile={profile} />
            <nav class="tabs" aria-label="Parts of the dossier">
              {(Object.keys(TABS) as TabName[]).map((one) => (
                <a key={one} href={tabHref(workload, one)} aria-current={one === tab ? 'page' : undefined}>
                  {TABS[one]}
                </a>
              ))}
            </nav>
            <LoadedTab key={tab} tab={tab} workload={workload} profile={profile} />
            {tab === '' && (
              <div class="table-tools">
                <CopyAs
                  ctb={['workload', wholeName(workload)]}
                  url={addressOf('/workloads/{namespace}/{kind}/{name}/profile', params)}
                />
              </div>
            )}
          </>
        )}
      </Shown>
    </div>
  )
}

function LoadedTab({ tab, workload, profile }: TabProps & { tab: TabName }) {
  const [loaded, setLoaded] = useState<{ Tab: ComponentType<TabProps> } | null>(null)
  const [error, setError] = useState<Error | null>(null)
  useEffect(() => {
    LOADERS[tab]().then(({ default: Tab }) => setLoaded({ Tab }), setError)
  }, [tab])
  if (error !== null) return <NotLoaded error={error} />
  return loaded === null ? <Loading /> : <loaded.Tab workload={workload} profile={profile} />
}
