/**
 * Policies generated from observations: network, admission, seccomp. The console generates and tries them, but never
 * applies them.
 */
import type { ComponentChildren } from 'preact'
import { Empty } from '../../parts/states.tsx'
import { usePlace } from '../../place.ts'
import type { PageProps } from '../index.ts'
import { Admission } from './exports/admission.tsx'
import { ProfileExport } from './exports/profile.tsx'
import { Seccomp } from './exports/seccomp.tsx'
import { NetworkPolicies } from './network/network.tsx'
import './policy.css'
import { hrefOf, type Target, targetOf, targetText } from './target.ts'
import { TargetPicker } from './target-picker.tsx'

const TABS = [
  { name: 'network', title: 'Network' },
  { name: 'admission', title: 'Admission' },
  { name: 'seccomp', title: 'Seccomp' },
  { name: 'export', title: 'All documents' },
] as const
type Tab = (typeof TABS)[number]['name']

export default function Policy({ rest }: PageProps) {
  const { query } = usePlace()
  const target = targetOf(rest)
  const tab = TABS.find(({ name }) => name === query.get('tab'))?.name ?? 'network'
  if (target === null)
    return (
      <>
        <h1>Policy</h1>
        <Empty title="There is no such page">
          <a href={hrefOf({ namespace: null, workload: null })}>Choose a namespace or a workload</a>
        </Empty>
      </>
    )
  return (
    <>
      <h1>Policy</h1>
      <p class="lead">Made from what was seen, to review, try and download. Nothing is ever applied from here.</p>
      <TargetPicker target={target} kept={{ tab: tab === 'network' ? null : tab }} />
      <nav class="tabs" aria-label="Kinds of policies">
        {TABS.map(({ name, title }) => (
          <a
            key={name}
            href={hrefOf(target, { tab: name === 'network' ? null : name })}
            aria-current={name === tab ? 'page' : undefined}
          >
            {title}
          </a>
        ))}
      </nav>
      {contentOf(tab, target)}
    </>
  )
}

function contentOf(tab: Tab, target: Target): ComponentChildren {
  const { workload } = target
  const key = targetText(target)
  if (tab === 'network') return <NetworkPolicies key={key} target={target} />
  if (tab === 'admission') return <Admission target={target} />
  if (workload === null)
    return (
      <Empty title="Choose a workload">
        {tab === 'seccomp' ? 'A seccomp profile' : 'A profile'} is that of one workload. Choose its namespace, then the
        workload.
      </Empty>
    )
  if (tab === 'seccomp') return <Seccomp key={key} target={target} workload={workload} />
  return <ProfileExport key={key} workload={workload} />
}
