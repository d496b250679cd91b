/** Failed checks of the Pod Security Standards, and the smallest patch towards `restricted`. */
import { CopyButton } from '../../../parts/copy-as.tsx'
import { download } from '../../../parts/csv.ts'
import { type Column, Table } from '../../../parts/table.tsx'
import type { Profile } from '../words.ts'

type PodSecurityOf = Profile['dimensions']['podSecurity']
type Failing = PodSecurityOf['pod']['failing'][number]

interface Row {
  readonly of: string
  readonly failing: Failing
}

export function PodSecurity({ dimension }: { dimension: PodSecurityOf }) {
  const { pod, containers, level, levelConfidence, unevaluatedChecks, pssVersion, recommendation } = dimension
  const rows: readonly Row[] = [
    ...pod.failing.map((failing) => ({ of: 'the pod', failing })),
    ...containers.flatMap(({ name, failing }) => failing.map((one) => ({ of: name, failing: one }))),
  ]
  return (
    <section class="section">
      <h2>Pod security</h2>
      <p>
        {level === null
          ? 'No level: no container of it is known to be current.'
          : `Level ${level}${levelConfidence === 'upper_bound' ? ' at best' : ''}, by ${pssVersion}.`}
        {!pod.known && ' The fields of the pod were not reported.'}
        {unevaluatedChecks.length > 0 && (
          <span class="faint"> Not checked, because agents do not report it: {unevaluatedChecks.join(', ')}.</span>
        )}
      </p>
      {level !== null && (
        <Table
          name="Failing checks of Pod Security"
          rows={rows}
          keyOf={({ of, failing: { check, field } }) => `${of} ${check} ${field}`}
          columns={COLUMNS}
          empty={<p>All checks that could be made pass.</p>}
        />
      )}
      {recommendation !== null && (
        <details>
          <summary>A patch towards restricted, to be reviewed; nothing is applied here</summary>
          <div class="section">
            <pre class="document">{recommendation.yaml}</pre>
            <div class="table-tools">
              <CopyButton label="Copy" text={recommendation.yaml} />
              <button
                type="button"
                class="quiet"
                onClick={() => download('pod-security-patch.yaml', 'application/yaml', recommendation.yaml)}
              >
                Download
              </button>
            </div>
            <ul class="facts">
              {recommendation.caveats.map((caveat) => (
                <li key={caveat}>{caveat}</li>
              ))}
            </ul>
          </div>
        </details>
      )}
    </section>
  )
}

const valueText = (value: unknown): string =>
  value === null || value === undefined ? 'not set' : typeof value === 'string' ? value : JSON.stringify(value)

const COLUMNS: readonly Column<Row>[] = [
  { title: 'Of', cell: ({ of }) => of, text: ({ of }) => of },
  {
    title: 'Check',
    cell: ({ failing: { check } }) => <span class="nowrap">{check}</span>,
    text: ({ failing: { check } }) => check,
  },
  {
    title: 'Level',
    cell: ({ failing: { level } }) => <span class="nowrap">{level}</span>,
    text: ({ failing: { level } }) => level,
  },
  { title: 'Field', cell: ({ failing: { field } }) => <code>{field}</code>, text: ({ failing: { field } }) => field },
  {
    title: 'Value',
    cell: ({ failing: { value } }) => <code>{valueText(value)}</code>,
    text: ({ failing: { value } }) => valueText(value),
  },
  { title: 'Why', cell: ({ failing: { message } }) => message, text: ({ failing: { message } }) => message },
]
