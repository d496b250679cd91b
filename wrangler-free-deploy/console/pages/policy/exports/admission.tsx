/** Admission policies from the signers of running images, for the cluster or one namespace. */
import { addressOf, type Params } from '../../../api/client.ts'
import { type Reading, useRead } from '../../../api/query.ts'
import { usePlace } from '../../../place.ts'
import { Check, type Choice, Select, useChoice } from '../controls.tsx'
import { fileNameOf, hrefOf, type Target } from '../target.ts'
import { GeneratedText } from './generated-text.tsx'

const FORMATS: readonly Choice[] = [
  { value: 'kyverno', label: 'Kyverno' },
  { value: 'policy-controller', label: 'policy-controller (sigstore)' },
  { value: 'native', label: 'The evaluator' },
]
const AUDIT: Choice = { value: 'audit', label: 'Audit: report' }
const ENFORCE: Choice = { value: 'enforce', label: 'Enforce: deny' }

type Query = NonNullable<Params<'/attestations/policy'>['query']>

export function Admission({ target }: { target: Target }) {
  const { query: given } = usePlace()
  const format = useChoice('format', FORMATS)
  const isNative = format === 'native'
  const modes = [AUDIT, { ...ENFORCE, isDisabled: isNative }]
  const mode = useChoice('mode', modes)
  const { namespace, workload } = target
  const yes = (name: 'acknowledgePartial' | 'acknowledgeClusterWide') =>
    given.get(name) === 'true' ? { [name]: 'true' } : {}
  const query: Query = {
    format: format as NonNullable<Query['format']>,
    mode: mode as NonNullable<Query['mode']>,
    ...(namespace !== null && { namespace }),
    ...yes('acknowledgePartial'),
    ...yes('acknowledgeClusterWide'),
  }
  const reading = useRead('/attestations/policy', { query }, { pollMs: 0 }) as unknown as Reading<string>
  const url = addressOf('/attestations/policy', { query })
  return (
    <section class="section" aria-labelledby="admission">
      <h2 id="admission">
        Admission policies of{' '}
        {namespace === null ? (
          'the cluster'
        ) : (
          <>
            namespace <bdi>{namespace}</bdi>
          </>
        )}
      </h2>
      <p class="lead">
        They accept images by the signers that were found on the images that run. The signers were observed; nobody has
        vetted them.
      </p>
      {workload !== null && (
        <p>
          They are made for the whole namespace. Those of <bdi>{workload.name}</bdi> alone are in its{' '}
          <a href={hrefOf(target, { tab: 'export', artifacts: 'admission' })}>profile</a>.
        </p>
      )}
      <div class="policy-controls">
        <Select name="format" label="For" choices={FORMATS} />
        <Select name="mode" label="Mode" choices={modes} />
        {given.get('acknowledgePartial') === 'true' && (
          <Check name="acknowledgePartial" label="Also without the images that are not covered" />
        )}
        {given.get('acknowledgeClusterWide') === 'true' && (
          <Check name="acknowledgeClusterWide" label="Also for other namespaces with images of these names" />
        )}
      </div>
      {isNative && <p class="faint">The evaluator judges and reports. It enforces nothing.</p>}
      <GeneratedText
        reading={reading}
        label="Admission policies as YAML"
        fileName={fileNameOf(
          target.workload === null ? target : { ...target, workload: null },
          `images-${mode}`,
          'yaml',
        )}
        commands={{ ctb: ['get', url.slice(window.location.origin.length)], url }}
        nothing="All images that run are covered."
        partial="Make it without these images: no policy would check them."
      >
        <p class="faint">
          An identity of a workflow that signed for a tag is accepted for any tag; all others are matched exactly. In
          audit mode nothing is denied, and no pod is changed.
        </p>
      </GeneratedText>
    </section>
  )
}
