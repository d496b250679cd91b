/** Generates a SeccompProfile from the observed set and the edits. The broker stores and applies nothing. */
import { useState } from 'preact/hooks'
import { ApiError, addressOf, send } from '../../../api/client.ts'
import { CopyAs, CopyButton } from '../../../parts/copy-as.tsx'
import { download } from '../../../parts/csv.ts'
import { Failure } from '../../../parts/states.tsx'
import { go, hrefWith, usePlace } from '../../../place.ts'
import { type Named, wholeName } from '../name.ts'
import { Edited } from './edited.tsx'
import { ACTION_TEXTS, ACTIONS, allowed, type Edits, editsOf, enforces, FORMATS } from './edits.ts'
import type { Seccomp } from './tab.tsx'

const PATH = '/seccomp/profiles/{namespace}/{kind}/{name}/export'
const CONFLICT = 409

type Outcome =
  | { readonly state: 'made'; readonly text: string; readonly edits: string }
  | { readonly state: 'refused'; readonly message: string; readonly edits: string }
  | { readonly state: 'failed'; readonly error: Error; readonly edits: string }

export function Export({ workload, seccomp }: { workload: Named; seccomp: Seccomp }) {
  const { query } = usePlace()
  const edits = editsOf(query)
  const asked = JSON.stringify(edits)
  const [outcome, setOutcome] = useState<Outcome | null>(null)
  const [isAcknowledged, setAcknowledged] = useState(false)
  const [isMaking, setMaking] = useState(false)
  const observed = seccomp.profile.syscalls.flatMap(({ names }) => names)
  const make = async () => {
    setMaking(true)
    try {
      setOutcome({ state: 'made', text: await exported(workload, edits, isAcknowledged), edits: asked })
    } catch (error) {
      setOutcome(
        error instanceof ApiError && error.status === CONFLICT
          ? { state: 'refused', message: error.message, edits: asked }
          : { state: 'failed', error: error as Error, edits: asked },
      )
    } finally {
      setMaking(false)
    }
  }
  const isPartial = !seccomp.captureComplete && enforces(edits.defaultAction)
  // A profile of earlier edits must not be mistaken for the current one.
  const shown = outcome?.edits === asked ? outcome : null
  return (
    <section class="section">
      <h2>Make a profile</h2>
      <p class="faint">
        A SeccompProfile that allows what was observed, with your edits. It is made for you to review and download;
        nothing is stored or applied.
      </p>
      <Choices edits={edits} suggestedName={seccomp.suggestedName} />
      <Edited observed={observed} edits={edits} />
      {(isPartial || shown?.state === 'refused') && (
        <div class="note">
          {shown?.state === 'refused' && (
            <pre class="wrap" role="alert">
              {shown.message}
            </pre>
          )}
          <p>
            Not all syscalls of its pods are recorded (capture level {seccomp.capture.level}). A profile that enforces
            may stop what was never seen.
          </p>
          <label class="check">
            <input type="checkbox" checked={isAcknowledged} onChange={() => setAcknowledged(!isAcknowledged)} /> Make it
            nevertheless
          </label>
        </div>
      )}
      <div class="table-tools">
        <button type="button" class="main" disabled={isMaking} onClick={() => void make()}>
          {isMaking ? 'Making…' : `Make it, with ${allowed(observed, edits).length} syscalls`}
        </button>
        {edits.add.length === 0 && edits.remove.length === 0 && <Commands workload={workload} edits={edits} />}
      </div>
      {shown?.state === 'failed' && <Failure error={shown.error} retry={() => void make()} isByHand />}
      {shown?.state === 'made' && (
        <Made text={shown.text} fileName={`${edits.name || seccomp.suggestedName}.${edits.format}`} />
      )}
    </section>
  )
}

async function exported({ namespace, kind, name }: Named, edits: Edits, acknowledgePartial: boolean): Promise<string> {
  const { defaultAction, format, add, remove } = edits
  const answer = await send(
    PATH,
    { path: { namespace, kind, name } },
    {
      defaultAction,
      format,
      ...{ add: [...add], remove: [...remove] },
      ...(edits.name !== '' && { name: edits.name }),
      ...(acknowledgePartial && { acknowledgePartial }),
    },
  )
  return typeof answer === 'string' ? answer : `${JSON.stringify(answer, null, 2)}\n`
}

function Choices({ edits, suggestedName }: { edits: Edits; suggestedName: string }) {
  const [name, setName] = useState(edits.name)
  return (
    <div class="form-row">
      <label class="field">
        Any other syscall
        <select
          value={edits.defaultAction}
          onChange={({ currentTarget }) => go(hrefWith({ defaultAction: currentTarget.value }), { replace: true })}
        >
          {ACTIONS.map((one) => (
            <option key={one} value={one}>
              {ACTION_TEXTS[one]} ({one})
            </option>
          ))}
        </select>
      </label>
      <label class="field">
        Format
        <select
          value={edits.format}
          onChange={({ currentTarget }) => go(hrefWith({ format: currentTarget.value }), { replace: true })}
        >
          {FORMATS.map((one) => (
            <option key={one}>{one}</option>
          ))}
        </select>
      </label>
      <label class="field">
        Name of the resource
        <input
          value={name}
          placeholder={suggestedName}
          onInput={({ currentTarget }) => setName(currentTarget.value)}
          onChange={() => go(hrefWith({ name: name.trim() }), { replace: true })}
        />
      </label>
    </div>
  )
}

function Commands({ workload, edits: { defaultAction, format, name } }: { workload: Named; edits: Edits }) {
  const { namespace, kind, name: workloadName } = workload
  const ctb = ['seccomp', 'export', wholeName(workload), '--default-action', defaultAction, '--format', format]
  const params = {
    path: { namespace, kind, name: workloadName },
    query: { defaultAction, format, ...(name !== '' && { name }) },
  }
  return <CopyAs ctb={name === '' ? ctb : [...ctb, '--name', name]} url={addressOf(PATH, params)} />
}

function Made({ text, fileName }: { text: string; fileName: string }) {
  const type = fileName.endsWith('.json') ? 'application/json' : 'application/yaml'
  return (
    <div>
      <div class="table-tools" role="status">
        <span>{fileName}</span>
        <span class="grow" />
        <CopyButton label="Copy" text={text} />
        <button type="button" class="quiet" onClick={() => download(fileName, type, text)}>
          Download
        </button>
      </div>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls has to be reached by the keyboard */}
      <section class="document" tabIndex={0} aria-label="The profile">
        <pre>{text}</pre>
      </section>
    </div>
  )
}
