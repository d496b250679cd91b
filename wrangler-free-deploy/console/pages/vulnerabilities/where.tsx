/** Where a vulnerability runs and its exposure, by container and by image. */
import type { Answer } from '../../api/client.ts'
import type { Commands } from '../../parts/copy-as.tsx'
import { counted } from '../../parts/plural.ts'
import { Empty } from '../../parts/states.tsx'
import { ImageLink, InUse, imageName, JoinBadge } from '../../parts/supply-chain.tsx'
import { type Column, Table } from '../../parts/table.tsx'
import { Badge, Count, Digest, SeverityBadge, Workload } from '../../parts/text.tsx'
import { Ago } from '../../parts/time.tsx'
import { go, href, hrefWith, usePlace } from '../../place.ts'

type Exposure = Answer<'/vulnerabilities/{id}/exposure'>
type Container = Exposure['workloads'][number]
type Image = Exposure['images'][number]
type Network = Container['network']

const VIA: Readonly<Record<Network['exposedVia'][number], string>> = {
  other_namespace: 'other namespaces',
  unattributed: 'unknown peers',
  public_ip: 'public addresses',
  node: 'nodes',
}

interface WorkloadsProps {
  readonly id: string
  readonly exposure: Exposure
  readonly windows: readonly { readonly hours: number; readonly label: string }[]
  readonly hours: number
  readonly commands: Commands
}

export function Workloads({ id, exposure, windows, hours, commands }: WorkloadsProps) {
  const namespace = usePlace().query.get('namespace')
  const rows = namespace === null ? exposure.workloads : exposure.workloads.filter((one) => one.namespace === namespace)
  const isCut = exposure.truncatedLists.includes('workloads')
  return (
    <div class="section">
      <h2 id="where">Where it runs, and what reaches it</h2>
      <p class="faint">
        Containers of images that have it, those that run first{isCut && '; more than these 200 were left out'}. A
        container that nothing was seen to reach may still be reachable.
        {namespace !== null && (
          <>
            {' '}
            Only those of {namespace}. <a href={hrefWith({ namespace: null })}>Show all</a>
          </>
        )}
      </p>
      <Table
        name="Where it runs"
        rows={rows}
        keyOf={(one) => [one.clusterId, one.namespace, one.kind, one.name, one.container, one.imageDigest].join('/')}
        columns={CONTAINER_COLUMNS}
        commands={commands}
        empty={
          isCut && namespace !== null ? (
            <Empty title={`No container of ${namespace} is among these 200`}>
              Others were left out. <a href={href(['vulnerabilities'], { namespace, vuln_id: id })}>The list</a> counts
              the workloads of {namespace} that run it.
            </Empty>
          ) : (
            <Empty title="No container is known that runs or ran such an image" />
          )
        }
        tools={
          <label>
            Flows of the last{' '}
            <select value={hours} onChange={({ currentTarget }) => go(hrefWith({ window_hours: currentTarget.value }))}>
              {windows.map((one) => (
                <option key={one.hours} value={one.hours}>
                  {one.label}
                </option>
              ))}
            </select>
          </label>
        }
      />
    </div>
  )
}

function Exposed({ network }: { network: Network }) {
  const { exposed, exposedVia, ingressFlowsObserved } = network
  if (exposed === true)
    return (
      <span class="roomy">
        <Badge tone="warn">exposed</Badge> from {exposedVia.map((one) => VIA[one]).join(', ')}
      </span>
    )
  if (exposed === false) return <span class="roomy">only its own namespace was seen</span>
  return (
    <span class="faint roomy">
      {ingressFlowsObserved === 0 ? 'not known: no flow was seen' : 'not known: a flow has no peer address'}
    </span>
  )
}

const CONTAINER_COLUMNS: readonly Column<Container>[] = [
  {
    title: 'Workload',
    cell: (one) => (
      <span class="some-room">
        <Workload {...one} query={{ tab: 'vulnerabilities' }} />
      </span>
    ),
    text: ({ namespace, kind, name }) => `${namespace}/${kind}/${name}`,
    width: '20rem',
  },
  {
    title: 'Container',
    cell: ({ container }) => <span class="some-room">{container}</span>,
    text: ({ container }) => container,
    width: '9rem',
  },
  {
    title: 'State',
    cell: ({ running, lastSeen }) =>
      running ? (
        <Badge tone="info">runs</Badge>
      ) : (
        <span class="faint some-room">
          not seen running, last <Ago at={lastSeen} />
        </span>
      ),
    text: ({ running }) => (running ? 'runs' : 'not seen running'),
    width: '9rem',
  },
  {
    title: 'In use',
    cell: ({ inUseState }) => <InUse state={inUseState} />,
    text: ({ inUseState }) => inUseState,
    width: '9rem',
  },
  {
    title: 'Reached',
    cell: ({ network }) => <Exposed network={network} />,
    text: ({ network: { exposed, exposedVia } }) =>
      exposed === null ? 'unknown' : exposedVia.join(' ') || 'own namespace',
    width: '19rem',
  },
  {
    title: 'Flows to it',
    cell: ({ namespace, kind, name, network }) => (
      <Count
        value={network.ingressFlowsObserved}
        to={href(['flows'], {
          ...{ to_workload: `${namespace}/${kind}/${name}`, seen_by: 'to' },
          since: `${network.windowHours}h`,
        })}
      />
    ),
    text: ({ network }) => network.ingressFlowsObserved,
    isNumber: true,
    width: '7rem',
  },
  {
    title: 'Image',
    cell: ({ imageDigest }) => <Digest digest={imageDigest} />,
    text: ({ imageDigest }) => imageDigest,
    width: '12rem',
  },
  {
    title: 'Found by',
    cell: ({ join }) => <JoinBadge join={join} />,
    text: ({ join }) => join,
    width: '8rem',
  },
]

export function Images({ exposure, commands }: { exposure: Exposure; commands: Commands }) {
  const isCut = exposure.truncatedLists.includes('images')
  return (
    <div class="section">
      <h2 id="images">Images that have it</h2>
      {isCut && <p class="faint">The first 200 by digest; there are more.</p>}
      <Table
        name="Images that have it"
        rows={exposure.images}
        keyOf={({ digest }) => digest}
        columns={IMAGE_COLUMNS}
        commands={commands}
        empty={<Empty title="No image" />}
      />
    </div>
  )
}

/** The first package on one line, because virtual tables need rows of equal height. */
function Packages({ packages: [first, ...others] }: { packages: Image['packages'] }) {
  if (first === undefined) return null
  const { name, installedVersion, fixedVersions } = first
  return (
    <>
      <a href={href(['packages'], { name })}>{name}</a> <bdi>{installedVersion}</bdi>
      <span class="faint">
        {fixedVersions.length === 0 ? ', no fix known' : `, fixed in ${fixedVersions.join(' or ')}`}
      </span>
      {others.length > 0 && (
        <span class="faint" title={others.map((one) => `${one.name} ${one.installedVersion}`).join('\n')}>
          , and {counted(others.length, 'more package', 'more packages')}
        </span>
      )}
    </>
  )
}

const IMAGE_COLUMNS: readonly Column<Image>[] = [
  { title: 'Image', cell: (image) => <ImageLink image={image} />, text: imageName, width: '22rem' },
  {
    title: 'Digest',
    cell: ({ digest }) => <Digest digest={digest} />,
    text: ({ digest }) => digest,
    width: '12rem',
  },
  {
    title: 'Severity',
    cell: ({ severity }) => <SeverityBadge severity={severity} />,
    text: ({ severity }) => severity,
    width: '6.5rem',
  },
  {
    title: 'Packages',
    cell: ({ packages }) => <Packages packages={packages} />,
    text: ({ packages }) => packages.map(({ name, installedVersion }) => `${name} ${installedVersion}`).join('; '),
    width: '26rem',
  },
  {
    title: 'Found by',
    cell: ({ join, sources }) => (
      <>
        {sources.join(', ')} <JoinBadge join={join} />
      </>
    ),
    text: ({ sources, join }) => `${sources.join(' ')} ${join}`,
    width: '14rem',
  },
]
