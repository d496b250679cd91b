/** Documents that are generated from the profile of a workload. */
import { type Answer, addressOf, type Params } from '../../../api/client.ts'
import { useRead } from '../../../api/query.ts'
import { CopyAs } from '../../../parts/copy-as.tsx'
import { Empty, Loading } from '../../../parts/states.tsx'
import { type Column, Table } from '../../../parts/table.tsx'
import { Badge, type WorkloadName } from '../../../parts/text.tsx'
import { go, hrefWith, usePlace } from '../../../place.ts'
import { Check, type Choice, Select, useChoice } from '../controls.tsx'
import { Refused } from '../refused.tsx'
import { GeneratedText } from './generated-text.tsx'

const PATH = '/workloads/{namespace}/{kind}/{name}/export'
const MODES: readonly Choice[] = [
  { value: 'audit', label: 'Audit: report' },
  { value: 'enforce', label: 'Enforce: block' },
]
const ARTIFACTS = [
  { name: 'networkpolicy', label: 'NetworkPolicy' },
  { name: 'ciliumnetworkpolicy', label: 'CiliumNetworkPolicy' },
  { name: 'seccompprofile', label: 'Seccomp profile' },
  { name: 'securitycontext', label: 'Patch of the security context' },
  { name: 'admission', label: 'Image policy' },
  { name: 'vex', label: 'OpenVEX draft' },
  { name: 'sbom', label: 'SBOMs' },
] as const
/** An SBOM can be several megabytes long. */
const BY_DEFAULT = 'networkpolicy,ciliumnetworkpolicy,seccompprofile,securitycontext,admission'

type Query = NonNullable<Params<typeof PATH>['query']>
type Exported = Extract<Answer<typeof PATH>, { documents: unknown }>
type Document = Exported['documents'][number]

export function ProfileExport({ workload }: { workload: WorkloadName }) {
  const { query: given } = usePlace()
  const mode = useChoice('mode', MODES) as 'audit' | 'enforce'
  const artifacts = given.get('artifacts') ?? BY_DEFAULT
  const query: Query = {
    ...{ mode, artifacts },
    ...(given.get('acknowledgePartial') === 'true' && { acknowledgePartial: 'true' }),
  }
  const { data, error, refetch } = useRead(
    PATH,
    { path: workload, query: { ...query, format: 'zip-manifest' } },
    { pollMs: 0, enabled: artifacts !== '' },
  )
  const url = addressOf(PATH, { path: workload, query })
  const commands = { ctb: ['get', url.slice(window.location.origin.length)], url }
  return (
    <section class="section" aria-labelledby="export">
      <h2 id="export">Documents of the profile</h2>
      <p class="lead">
        All that the profile of the workload gives, to keep under version control. Nothing is stored, and nothing is
        applied.
      </p>
      <div class="policy-controls">
        <Select name="mode" label="Mode" choices={MODES} />
        <Artifacts chosen={artifacts.split(',')} />
        {given.get('acknowledgePartial') === 'true' && (
          <Check name="acknowledgePartial" label="Also what blocks and is not complete" />
        )}
      </div>
      {artifacts === '' ? (
        <Empty title="Choose at least one document" />
      ) : data !== undefined ? (
        <Documents exported={data as Exported} commands={commands} />
      ) : error !== null ? (
        <>
          <Refused error={error} retry={refetch} />
          <div class="table-tools">
            <CopyAs {...commands} />
          </div>
        </>
      ) : (
        <Loading />
      )}
    </section>
  )
}

function Artifacts({ chosen }: { chosen: readonly string[] }) {
  const toggle = (name: string) => {
    const next = ARTIFACTS.map((one) => one.name).filter((one) => chosen.includes(one) !== (one === name))
    const text = next.join(',')
    // An empty list in the address would mean all documents; a comma means none.
    go(hrefWith({ artifacts: text === BY_DEFAULT ? null : text, document: null }))
  }
  return (
    <fieldset class="artifacts">
      <legend>Documents</legend>
      {ARTIFACTS.map(({ name, label }) => (
        <label class="check" key={name}>
          <input
            type="checkbox"
            checked={chosen.includes(name)}
            disabled={chosen.length === 1 && chosen.includes(name)}
            onChange={() => toggle(name)}
          />{' '}
          {label}
        </label>
      ))}
    </fieldset>
  )
}

const labelOf = (artifact: string): string => ARTIFACTS.find(({ name }) => name === artifact)?.label ?? artifact

interface DocumentsProps {
  readonly exported: Exported
  readonly commands: { readonly ctb: readonly string[]; readonly url: string }
}

function Documents({ exported: { documents }, commands }: DocumentsProps) {
  const chosen = usePlace().query.get('document')
  const shown =
    documents.find((one) => one.fileName === chosen && one.available) ?? documents.find((one) => one.available)
  const columns: readonly Column<Document>[] = [
    {
      title: 'File',
      cell: ({ fileName, available }) =>
        available ? (
          <a
            class="nowrap"
            href={hrefWith({ document: fileName })}
            aria-current={fileName === shown?.fileName ? 'true' : undefined}
          >
            {fileName}
          </a>
        ) : (
          <span class="nowrap">{fileName}</span>
        ),
      text: ({ fileName }) => fileName,
    },
    {
      title: 'Kind',
      cell: ({ kind, artifact }) => <span class="nowrap">{kind ?? labelOf(artifact)}</span>,
      text: ({ kind, artifact }) => kind ?? labelOf(artifact),
    },
    {
      title: 'State',
      cell: ({ available }) =>
        available ? <Badge tone="good">available</Badge> : <Badge tone="warn">not available</Badge>,
      text: ({ available }) => (available ? 'available' : 'not available'),
    },
    {
      title: 'Why not, or how to apply it yourself',
      cell: ({ reason, applyWith }) =>
        reason ?? (applyWith === null ? <span class="faint">no Kubernetes object</span> : <code>{applyWith}</code>),
      text: ({ reason, applyWith }) => reason ?? applyWith,
    },
  ]
  return (
    <>
      <Table
        name="Documents"
        rows={documents}
        keyOf={({ fileName, artifact }) => `${artifact} ${fileName}`}
        columns={columns}
        commands={commands}
        isSelected={(row) => row === shown}
        empty={<Empty title="No document" />}
      />
      {shown !== undefined && <Chosen document={shown} />}
    </>
  )
}

function Chosen({ document: { fileName, content, image } }: { document: Document }) {
  return (
    <section class="section" aria-labelledby="document">
      <h3 id="document">{fileName}</h3>
      {image !== null && (
        <p class="faint wrap">
          Of {image.imageRef} ({image.containers.join(', ')}), {image.components ?? 'an unknown number of'} components
          {image.source !== null && `, from ${image.source}`}
        </p>
      )}
      <GeneratedText
        key={fileName}
        reading={{
          data: content ?? '',
          error: null,
          isFetching: false,
          isPolled: false,
          dataUpdatedAt: 0,
          refetch: () => undefined,
        }}
        label={`Text of ${fileName}`}
        fileName={fileName}
        commands={{}}
        nothing="Its comments warn of nothing."
      />
    </section>
  )
}
