/** The remarks of a generated text: gaps, warnings, and points to review. */
import { useMemo } from 'preact/hooks'
import { Badge, type Tone } from '../../../parts/text.tsx'
import { REMARK_KINDS, type Remark, type RemarkKind, remarksOf } from './remarks.ts'

const MAX_SHOWN = 20

const KINDS: Readonly<Record<RemarkKind, { readonly title: string; readonly tone: Tone; readonly isOpen: boolean }>> = {
  leftOut: { title: 'Seen, but left out', tone: 'bad', isOpen: true },
  warning: { title: 'Warnings', tone: 'warn', isOpen: true },
  notCovered: { title: 'Images that are not covered', tone: 'warn', isOpen: true },
  identity: { title: 'Identities to review', tone: 'info', isOpen: false },
  note: { title: 'Notes', tone: 'info', isOpen: false },
  allows: { title: 'Rules in words', tone: 'plain', isOpen: false },
}

export interface RemarkListProps {
  readonly text: string
  /** Shown if the text has no such remark. */
  readonly nothing: string
  readonly onLine?: (line: number) => void
}

export function RemarkList({ text, nothing, onLine }: RemarkListProps) {
  const remarks = useMemo(() => remarksOf(text), [text])
  const groups = REMARK_KINDS.flatMap((kind) => {
    const own = remarks.filter((one) => one.kind === kind)
    return own.length === 0 ? [] : [{ kind, own }]
  })
  const isWarned = groups.some(({ kind }) => KINDS[kind].isOpen)
  return (
    <div class="remarks">
      {!isWarned && <p class="faint">{nothing}</p>}
      {groups.map(({ kind, own }) => (
        <Group key={kind} kind={kind} remarks={own} {...(onLine && { onLine })} />
      ))}
    </div>
  )
}

interface GroupProps {
  readonly kind: RemarkKind
  readonly remarks: readonly Remark[]
  readonly onLine?: (line: number) => void
}

function Group({ kind, remarks, onLine }: GroupProps) {
  const { title, tone, isOpen } = KINDS[kind]
  return (
    <details open={isOpen}>
      <summary>
        {title} <Badge tone={tone}>{remarks.length}</Badge>
      </summary>
      <ul>
        {remarks.slice(0, MAX_SHOWN).map(({ line, text }) => (
          <li key={line}>
            <span class="wrap">{text}</span>{' '}
            {onLine && (
              <button type="button" class="link" onClick={() => onLine(line)}>
                line {line}
              </button>
            )}
          </li>
        ))}
      </ul>
      {remarks.length > MAX_SHOWN && <p class="faint">{remarks.length - MAX_SHOWN} more are in the text.</p>}
    </details>
  )
}
