/** Chooses a namespace, and then one of its workloads or all of them. */
import { useEffect, useRef, useState } from 'preact/hooks'
import { useRead } from '../../api/query.ts'
import { useSettled } from '../../hooks.ts'
import { Combobox, type Option } from '../../parts/combobox.tsx'
import { go, type Query } from '../../place.ts'
import { hrefOf, type Target } from './target.ts'

const TYPING_MS = 150
const SHOWN = 20
/** The route completes at most this many values. */
const HINTS = 50
const ALL = 'all'

interface Choice extends Option {
  readonly target: Target
}

/** `kept` are the query parameters that stay when the target changes. */
export function TargetPicker({ target, kept }: { target: Target; kept: Query }) {
  const workload = useRef<HTMLInputElement>(null)
  const isChosenHere = useRef(false)
  const choose = (next: Target) => {
    isChosenHere.current = next.workload === null && next.namespace !== target.namespace
    go(hrefOf(next, kept))
  }
  useEffect(() => {
    if (!isChosenHere.current) return
    isChosenHere.current = false
    // The effect of the frame that moves the focus to a new page runs after this one.
    queueMicrotask(() => workload.current?.focus())
  }, [target.namespace])
  return (
    <div class="policy-target">
      <NamespaceField key={target.namespace} target={target} onChoose={choose} />
      {target.namespace !== null && (
        <WorkloadField
          key={`${target.namespace}/${target.workload?.kind}/${target.workload?.name}`}
          namespace={target.namespace}
          target={target}
          inputRef={workload}
          onChoose={choose}
        />
      )}
    </div>
  )
}

interface FieldProps {
  readonly target: Target
  readonly onChoose: (target: Target) => void
}

function NamespaceField({ target, onChoose }: FieldProps) {
  const [text, setText] = useState(target.namespace ?? '')
  const prefix = text === target.namespace ? '' : text.trim()
  const asked = useSettled(prefix, TYPING_MS)
  const { data, error } = useRead('/flows/hints', { query: { field: 'namespace', prefix: asked } }, { pollMs: 0 })
  const isAnswered = asked === prefix && data !== undefined
  const options = (isAnswered ? data.values : []).map(
    (namespace): Choice => ({ key: namespace, label: namespace, target: { namespace, workload: null } }),
  )
  const note = !isAnswered
    ? error?.message
    : options.length === 0
      ? 'No pod or service of such a namespace is known.'
      : options.length >= HINTS
        ? `The first ${HINTS}; type on for others.`
        : undefined
  return (
    <div class="policy-field">
      <span aria-hidden="true">Namespace</span>
      <Combobox
        label="Namespace"
        placeholder="Choose a namespace"
        text={text}
        options={options}
        onText={setText}
        onTake={(option) => option && onChoose(option.target)}
        takesFirst={prefix !== ''}
        {...(note !== undefined && { note })}
      />
    </div>
  )
}

interface WorkloadFieldProps extends FieldProps {
  readonly namespace: string
  readonly inputRef: { current: HTMLInputElement | null }
}

function WorkloadField({ namespace, target, inputRef, onChoose }: WorkloadFieldProps) {
  const current = target.workload === null ? '' : `${target.workload.kind}/${target.workload.name}`
  const [text, setText] = useState(current)
  const typed = text === current ? '' : text.trim()
  // `Kind/name` also chooses a workload that is not suggested, such as one without a live pod.
  const [, kind, name] = /^([^/\s]+)\/([^/\s]+)$/.exec(typed) ?? []
  const search = name ?? typed
  const asked = useSettled(search, TYPING_MS)
  const { data, error } = useRead(
    '/workloads',
    { query: { namespace, search: asked, limit: SHOWN } },
    { pollMs: 0, enabled: /^[ -~]{0,253}$/.test(asked) },
  )
  const isAnswered = asked === search && data !== undefined
  const found = (isAnswered ? data.items : []).map(
    (one): Choice => ({
      key: `${one.kind}/${one.name}`,
      label: one.name,
      note: one.kind,
      target: { namespace, workload: { namespace, kind: one.kind, name: one.name } },
    }),
  )
  const all: Choice = { key: ALL, label: `All workloads of ${namespace}`, target: { namespace, workload: null } }
  const options = typed === '' ? [all, ...found] : found
  const isNone = isAnswered && options.length === 0
  const note = isNone
    ? 'No workload with a live pod has such a name. Kind/name and Enter takes any.'
    : isAnswered && data.nextAfter !== null
      ? `The first ${SHOWN}; type a part of the name for others.`
      : error?.message
  return (
    <div class="policy-field">
      <span aria-hidden="true">Workload</span>
      <Combobox
        label="Workload"
        placeholder={`All workloads of ${namespace}`}
        text={text}
        options={options}
        inputRef={inputRef}
        onText={setText}
        onTake={(option) => {
          if (option !== null) onChoose(option.target)
          else if (kind !== undefined && name !== undefined)
            onChoose({ namespace, workload: { namespace, kind, name } })
        }}
        takesFirst={typed !== '' && kind === undefined}
        {...(note !== undefined && { note })}
      />
    </div>
  )
}
