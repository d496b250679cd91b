/** The second step: the editable text, and its changes. */
import { useSettled } from '../../../hooks.ts'
import { Badge } from '../../../parts/text.tsx'
import { hrefWith } from '../../../place.ts'
import { ExportButtons } from '../export-buttons.tsx'
import { DiffView } from '../text/diff-view.tsx'
import { Editor, type Going, type Mark } from '../text/editor.tsx'
import type { Edits } from './draft.ts'
import type { PlacedFault } from './network.tsx'

const TYPING_MS = 300

export interface EditProps {
  readonly text: string
  readonly generated: string
  readonly edits: Edits | null
  readonly isCompared: boolean
  readonly fileName: string
  readonly fault: PlacedFault | null
  readonly faultId: string
  readonly marks: ReadonlyMap<number, Mark>
  readonly going: Going | null
  readonly onText: (text: string) => void
  readonly onReset: () => void
  readonly onSaved: () => void
  readonly onSubmit: () => void
  readonly onLine: (line: number) => void
}

export function Edit(props: EditProps) {
  const { text, generated, edits, isCompared, fileName, fault, faultId, marks, going } = props
  const { onText, onReset, onSaved, onSubmit, onLine } = props
  const compared = useSettled(text, TYPING_MS)
  const isOfOther = edits !== null && edits.base !== generated && generated !== ''
  return (
    <section class="section beside" aria-labelledby="edit">
      <div class="step-head">
        <h2 id="edit">2. Edit</h2>
        {edits !== null && <Badge tone="info">{edits.isSaved ? 'edited, downloaded' : 'edited'}</Badge>}
      </div>
      <div class="editor-tools">
        <nav class="segments" aria-label="View of the text">
          <a href={hrefWith({ view: null })} aria-current={isCompared ? undefined : 'true'}>
            Text
          </a>
          <a href={hrefWith({ view: 'changes' })} aria-current={isCompared ? 'true' : undefined}>
            Changes
          </a>
        </nav>
        <span class="grow" />
        <button type="button" class="quiet" aria-disabled={edits === null} onClick={onReset}>
          Back to generated
        </button>
        <ExportButtons text={text} fileName={fileName} onDownload={onSaved} />
      </div>
      {isOfOther && (
        <p class="stale">
          Your edits began with another generated text. They are kept; the changes are those against the text of now.
        </p>
      )}
      {fault !== null && (
        <p class="fault" id={faultId} role="alert">
          {fault.at !== null && (
            <button type="button" class="link" onClick={() => onLine(fault.at!)}>
              Line {fault.at}
            </button>
          )}
          {fault.at !== null && ': '}
          {fault.path !== null && <code class="wrap">{fault.path}</code>} <span class="wrap">{fault.rule}</span>
        </p>
      )}
      {isCompared ? (
        <DiffView before={generated} after={compared} />
      ) : (
        <Editor
          label="Policies as YAML"
          text={text}
          placeholder="Paste a NetworkPolicy or CiliumNetworkPolicy here"
          marks={marks}
          going={going}
          faultId={fault === null ? undefined : faultId}
          onText={onText}
          onSubmit={onSubmit}
        />
      )}
      <p class="faint">
        Tab leaves the text, Ctrl+Enter tries it. Edits stay in this tab and are gone when it is closed; the broker
        keeps nothing.
      </p>
    </section>
  )
}
