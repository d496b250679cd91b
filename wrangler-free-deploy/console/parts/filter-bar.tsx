/**
 * The filter bar. Words `field:value` become query parameters of the page, with the names of the API, so that the
 * address bar, the API and the command line agree. A repeated field matches any of its values; `!` in front of a value
 * excludes it where the route can do that.
 */
import { useEffect, useRef, useState } from 'preact/hooks'
import { useSettled } from '../hooks.ts'
import { go, hrefWith, usePlace } from '../place.ts'
import { Combobox, type Option } from './combobox.tsx'
import { isExclusion } from './filter-values.ts'

const TYPING_MS = 150
/** Routes return at most this many completions. */
const MANY = 50

export interface FilterField {
  /** Name of the query parameter. */
  readonly name: string
  readonly meaning: string
  /** All valid values, if they are few. */
  readonly values?: readonly string[]
  /** Reads values that begin with a text. */
  readonly complete?: (prefix: string, signal: AbortSignal) => Promise<readonly string[]>
  /** Whether several values may be given. */
  readonly isRepeated?: boolean
  /** Whether `!` in front of a value excludes it. */
  readonly canExclude?: boolean
}

export interface FilterBarProps {
  readonly fields: readonly FilterField[]
  /** Finds the field for a word without one; null if none fits. */
  readonly fieldOf?: (word: string) => string | null
}

interface Suggestion extends Option {
  readonly text: string
}

interface Given {
  readonly name: string
  readonly value: string
  readonly canExclude: boolean
}

const cannotExclude = (name: string) => `A value of ${name} cannot be left out here`

export function FilterBar({ fields, fieldOf }: FilterBarProps) {
  const { query } = usePlace()
  const [text, setText] = useState('')
  const [fault, setFault] = useState<string | null>(null)
  /** The filter that is being edited. */
  const [edited, setEdited] = useState<Given | null>(null)
  const input = useRef<HTMLInputElement>(null)
  const { options, note } = useSuggestions(fields, text)
  const given = fields.flatMap(({ name, canExclude = false }) =>
    query.getAll(name).map((value): Given => ({ name, value, canExclude })),
  )
  const ignored = given.find(({ value, canExclude }) => isExclusion(value) && !canExclude)
  const said = fault ?? (ignored && `${cannotExclude(ignored.name)}, so ${ignored.value} is ignored.`)
  const isEdited = (one: Given) => one.name === edited?.name && one.value === edited.value

  const clear = () => {
    setText('')
    setFault(null)
    setEdited(null)
  }
  const add = (input: string) => {
    const words = wordsOf(input)
    const read = words.map((word) => readWord(word, fields, fieldOf))
    const wrong = read.find((one) => typeof one === 'string')
    if (wrong !== undefined) return setFault(wrong)
    const next: Record<string, readonly string[]> = {}
    if (edited !== null) next[edited.name] = query.getAll(edited.name).filter((one) => one !== edited.value)
    for (const { field, value } of read as readonly Word[]) {
      const others = field.isRepeated ? (next[field.name] ?? query.getAll(field.name)) : []
      next[field.name] = [...others.filter((one) => one !== value), value]
    }
    clear()
    go(hrefWith({ ...next, after: null }))
  }
  const remove = ({ name, value }: Given) => {
    clear()
    go(hrefWith({ [name]: query.getAll(name).filter((one) => one !== value), after: null }))
    input.current?.focus()
  }
  const edit = (one: Given) => {
    setFault(null)
    setEdited(one)
    setText(`${one.name}:${one.value}`)
    input.current?.focus()
  }
  const last = given.at(-1)
  return (
    <div class="filter-bar">
      {given
        .filter((one) => !isEdited(one))
        .map((one) => (
          <Chip key={`${one.name}:${one.value}`} given={one} onEdit={() => edit(one)} onRemove={() => remove(one)} />
        ))}
      <Combobox
        label={edited === null ? 'Filter' : `Filter, was ${edited.name} ${edited.value}`}
        placeholder={given.length === 0 ? `Filter, such as ${fields[0]?.name}:…` : 'Filter'}
        text={text}
        options={options}
        inputRef={input}
        onText={(next) => {
          setFault(null)
          setText(next)
        }}
        onTake={(option) => {
          if (option?.isBeginning) setText(option.text)
          else if (option !== null) add(option.text)
          else if (text.trim() !== '') add(text.trim())
          else if (edited !== null) remove(edited)
        }}
        onEscape={clear}
        onBackspace={() => {
          if (edited !== null) remove(edited)
          else if (last) edit(last)
        }}
        {...(note !== null && { note })}
      />
      {given.length > 1 && (
        <button
          type="button"
          class="quiet"
          onClick={() => {
            clear()
            go(hrefWith({ ...Object.fromEntries(fields.map(({ name }) => [name, null])), after: null }))
            input.current?.focus()
          }}
        >
          Remove all
        </button>
      )}
      {said && (
        <p class="fault" role="alert">
          {said}
        </p>
      )}
    </div>
  )
}

/** An active filter: a click puts it back into the field, the cross removes it. */
function Chip({
  given: { name, value, canExclude },
  onEdit,
  onRemove,
}: {
  given: Given
  onEdit: () => void
  onRemove: () => void
}) {
  const isExcluded = canExclude && isExclusion(value)
  const said = isExcluded ? `not ${value.slice(1)}` : value
  return (
    <span class={isExcluded ? 'chip excluded' : 'chip'}>
      <button
        type="button"
        class="chip-text"
        title={`${name}:${value}, click to change it`}
        aria-label={`Change the filter ${name} ${said}`}
        onClick={onEdit}
      >
        <span class="faint">{name}:</span>
        <span class="clip">{said}</span>
      </button>
      <button
        type="button"
        class="chip-remove"
        title="Remove this filter"
        aria-label={`Remove the filter ${name} ${said}`}
        onClick={onRemove}
      >
        ×
      </button>
    </span>
  )
}

interface Word {
  readonly field: FilterField
  readonly value: string
}

/** Several filters may be pasted at once, separated by spaces. Any other text is one word, including its spaces. */
function wordsOf(text: string): readonly string[] {
  const words = text.split(/\s+/)
  return words.every((word) => split(word).name !== null) ? words : [text]
}

/** Parses a word. Returns an error message if that fails. */
function readWord(word: string, fields: readonly FilterField[], fieldOf: FilterBarProps['fieldOf']): Word | string {
  const { name, value } = split(word)
  const field = fields.find((one) => one.name === (name ?? fieldOf?.(word)))
  // A value may contain a colon, for example an IPv6 address.
  if (field === undefined && name !== null) {
    const guessed = fields.find((one) => one.name === fieldOf?.(word))
    if (guessed !== undefined) return { field: guessed, value: word }
    return `No field ${name} here.`
  }
  if (field === undefined) return `Say which field: ${fields[0]?.name}:${word}`
  const bare = value.replace(/^!/, '')
  if (bare === '') return `Say which ${field.name}.`
  if (isExclusion(value) && !field.canExclude) return `${cannotExclude(field.name)}.`
  if (field.values === undefined) return { field, value }
  const known = field.values.find((one) => one.toLowerCase() === bare.toLowerCase())
  return known === undefined
    ? `${field.name} is one of ${field.values.join(', ')}.`
    : { field, value: isExclusion(value) ? `!${known}` : known }
}

function split(word: string): { name: string | null; value: string } {
  const match = /^([a-z_A-Z]+)[:=](.*)$/.exec(word)
  return match === null ? { name: null, value: word } : { name: match[1]!, value: match[2]!.trim() }
}

interface Suggestions {
  readonly options: readonly Suggestion[]
  readonly note: string | null
}

function useSuggestions(fields: readonly FilterField[], text: string): Suggestions {
  const { name, value } = split(text)
  const field = fields.find((one) => one.name === name)
  const isExcluded = isExclusion(value)
  const prefix = isExcluded ? value.slice(1) : value
  const [found, setFound] = useState<{ for: string; values: readonly string[] }>({ for: '', values: [] })
  const wanted = field?.complete === undefined ? '' : `${field.name}:${prefix}`
  const asked = useSettled(wanted, TYPING_MS)
  useEffect(() => {
    if (asked === '' || asked !== wanted || field?.complete === undefined) return
    const abort = new AbortController()
    field.complete(prefix, abort.signal).then(
      (values) => setFound({ for: asked, values }),
      // Typing works without suggestions.
      () => {},
    )
    return () => abort.abort()
  }, [asked])
  if (field === undefined) return { options: fieldsLike(fields, text), note: null }
  const isContained = (one: string) => one.toLowerCase().includes(prefix.toLowerCase())
  const values =
    field.values?.filter(isContained) ??
    // Completions for this text are shown as they are. Those for an earlier text are filtered until the answer arrives.
    (found.for === wanted
      ? found.values
      : found.for.startsWith(`${field.name}:`)
        ? found.values.filter(isContained)
        : [])
  const options = values.map((one) => ({
    key: one,
    label: one,
    text: `${field.name}:${isExcluded ? '!' : ''}${one}`,
  }))
  const isWaiting = field.complete !== undefined && found.for !== wanted
  return { options, note: noteOf(field, options.length, isExcluded, isWaiting) }
}

function noteOf(
  { name, meaning, values, canExclude }: FilterField,
  shown: number,
  isExcluded: boolean,
  isWaiting: boolean,
): string {
  if (isExcluded) return canExclude ? `Leaves out: ${meaning}` : `${cannotExclude(name)}.`
  if (shown >= MANY) return `The first ${shown}; type on for others.`
  if (shown === 0 && !isWaiting && values === undefined)
    return `${meaning}. None is known that begins so; Enter takes it as it is.`
  return canExclude ? `${meaning}. ${name}:!… leaves out.` : meaning
}

/** The fields whose name contains the text; those that begin with it come first. */
function fieldsLike(fields: readonly FilterField[], text: string): readonly Suggestion[] {
  const lower = text.trim().toLowerCase()
  const isFirst = ({ name }: FilterField) => name.startsWith(lower)
  const byName = fields.filter(({ name }) => name.includes(lower))
  return [...byName.filter(isFirst), ...byName.filter((one) => !isFirst(one))].map(({ name, meaning }) => ({
    key: name,
    label: `${name}:`,
    note: meaning,
    text: `${name}:`,
    isBeginning: true,
  }))
}
