/** Network policies in three steps: generate, edit, try against observed flows. */
import { useId, useMemo, useState } from 'preact/hooks'
import { ApiError } from '../../../api/client.ts'
import { go, hrefWith, usePlace } from '../../../place.ts'
import { useChoice } from '../controls.tsx'
import { fileNameOf, type Target, targetText } from '../target.ts'
import type { Going, Mark } from '../text/editor.tsx'
import { type Fault, faultOf, lineFinder, lineOfFault } from '../text/place.ts'
import { setDraft, type Tried, useDraft } from './draft.ts'
import { Edit } from './edit.tsx'
import { Generate, useGenerated } from './generate.tsx'
import { TrialStep } from './trial-step.tsx'
import { DAYS, DEFAULT_DAYS, tryPolicies } from './try-policies.ts'

const BAD_REQUEST = 400
const DAY_CHOICES = [DEFAULT_DAYS, ...DAYS.filter((one) => one !== DEFAULT_DAYS)].map((value) => ({
  value,
  label: value,
}))

/** An error in the tried text, with its line. */
export interface PlacedFault extends Fault {
  readonly at: number | null
}

export function NetworkPolicies({ target }: { target: Target }) {
  const key = targetText(target)
  const reading = useGenerated(target)
  const generated = target.namespace === null ? '' : (reading.data ?? '')
  const { edits, tried } = useDraft(key)
  const [isTrying, setTrying] = useState(false)
  const [going, setGoing] = useState<Going | null>(null)
  const days = useChoice('days', DAY_CHOICES)
  const isCompared = usePlace().query.get('view') === 'changes'
  const faultId = useId()
  const text = edits?.text ?? generated
  const isOutdated = tried !== null && (tried.text !== text || tried.days !== days)

  const edit = (next: string) => {
    const isGenerated = next === generated
    setDraft(key, { edits: isGenerated ? null : { text: next, base: edits?.base ?? generated, isSaved: false } })
  }
  const run = async () => {
    if (isTrying || text.trim() === '') return
    setTrying(true)
    const outcome = await tryPolicies(text, days).then(
      (trial) => ({ trial }),
      (error: Error) => ({ error }),
    )
    setDraft(key, { tried: { text, days, at: Date.now(), outcome } })
    setTrying(false)
    const fault = faultIn({ text, days, at: 0, outcome })
    if (fault?.at) goTo(fault.at)
  }
  const fault = useMemo(() => (tried === null || tried.text !== text ? null : faultIn(tried)), [tried, text])
  const marks = useMemo(() => marksOf(isOutdated ? null : tried), [isOutdated, tried])
  const goTo = (line: number) => {
    if (isCompared) go(hrefWith({ view: null }))
    setGoing({ line })
  }
  return (
    <>
      <Generate target={target} reading={reading} onLine={goTo} />
      <div class="policy-columns">
        <Edit
          text={text}
          generated={generated}
          edits={edits}
          isCompared={isCompared}
          fileName={fileNameOf(target, 'networkpolicy', 'yaml')}
          fault={fault}
          faultId={faultId}
          marks={marks}
          going={going}
          onText={edit}
          onReset={() => setDraft(key, { edits: null })}
          onSaved={() => edits && setDraft(key, { edits: { ...edits, isSaved: true } })}
          onSubmit={run}
          onLine={goTo}
        />
        <TrialStep
          days={days}
          tried={tried}
          isOutdated={isOutdated}
          isTrying={isTrying}
          isEmpty={text.trim() === ''}
          fileName={fileNameOf(target, 'networkpolicy', 'yaml')}
          onTry={run}
          onLine={goTo}
        />
      </div>
    </>
  )
}

/** An error in the text that the broker reported. */
function faultIn({ text, outcome }: Tried): PlacedFault | null {
  if (!('error' in outcome) || !(outcome.error instanceof ApiError) || outcome.error.status !== BAD_REQUEST) return null
  const fault = faultOf(outcome.error.message)
  return { ...fault, at: lineOfFault(text, fault) }
}

/** The lines of rules that deny observed flows, or the line of an error. */
function marksOf(tried: Tried | null): ReadonlyMap<number, Mark> {
  if (tried === null) return new Map()
  if ('error' in tried.outcome) {
    const line = faultIn(tried)?.at
    return new Map(line ? [[line, 'fault'] as const] : [])
  }
  const lineOf = lineFinder(tried.text)
  const denials = tried.outcome.trial.deniedEdges.flatMap(({ deniedBy }) => deniedBy)
  const lines = denials.map(({ document, path }) => lineOf(document, path))
  return new Map(lines.flatMap((line) => (line === null ? [] : [[line, 'denied'] as const])))
}
