/**
 * The filter bar: `field:value` words that become query parameters of the page, with the names that the API has, so that
 * the address bar, the API and the command line say the same. A field given twice means one or the other; `!` in front
 * of a value excludes it where the route knows that.
 */
import { useEffect, useRef, useState } from 'preact/hooks'
import { useSettled } from '../hooks.ts'
import { go, hrefWith, usePlace } from '../place.ts'
import { Combobox, type Option } from './combobox.tsx'

const TYPING_MS = 150

export interface FilterField {
  /** Name of the query parameter. */
  readonly name: string
  readonly meaning: string
  /** All values that there are. */
  readonly values?: readonly string[]
  /** Asks for values that begin with a text. */
  readonly complete?: (prefix: string, signal: AbortSignal) => Promise<readonly string[]>
  /** Whether several values may be given. */
  readonly isRepeated?: boolean
}

export interface FilterBarProps {
  readonly fields: readonly FilterField[]
  /** The field that a word without one is for; null for a word that fits none. */
  readonly fieldOf?: (word: string) => string | null
}

interface Suggestion extends Option {
  readonly text: string
  readonly isWhole: boolean
}

export function FilterBar({ fields, fieldOf }: FilterBarProps) {
  const { query } = usePlace()
  const [text, setText] = useState('')
  const [fault, setFault] = useState<string | null>(null)
  const input = useRef<HTMLInputElement>(null)
  const options = useSuggestions(fields, text)
  const given = fields.flatMap(({ name }) => query.getAll(name).map((value) => ({ name, value })))

  const add = (word: string) => {
    const { name, value } = split(word)
    const field = fields.find((one) => one.name === (name ?? fieldOf?.(word)))
    if (field === undefined || value === '') {
      setFault(name === null ? `Say which field: ${fields[0]?.name}:${word}` : `No field ${name} here.`)
      return
    }
    const others = field.isRepeated ? query.getAll(field.name).filter((one) => one !== value) : []
    setFault(null)
    setText('')
    go(hrefWith({ [field.name]: [...others, value], after: null }))
  }
  const remove = (name: string, value: string) => {
    go(hrefWith({ [name]: query.getAll(name).filter((one) => one !== value), after: null }))
    input.current?.focus()
  }
  const last = given.at(-1)
  return (
    <div class="filter-bar">
      {given.map(({ name, value }) => (
        <button
          type="button"
          class="chip"
          key={`${name}:${value}`}
          title="Remove this filter"
          aria-label={`Remove the filter ${name} ${value}`}
          onClick={() => remove(name, value)}
        >
          <span class="faint">{name}:</span>
          <span class="clip">{value}</span> ×
        </button>
      ))}
      <Combobox
        label="Filter"
        placeholder={given.length === 0 ? `Filter, such as ${fields[0]?.name}:…` : 'Filter'}
        text={text}
        options={options}
        inputRef={input}
        onText={(next) => {
          setFault(null)
          setText(next)
        }}
        onTake={(option) => {
          if (option === null) {
            if (text.trim() !== '') add(text.trim())
          } else if (option.isWhole) add(option.text)
          else setText(option.text)
        }}
        onBackspace={() => last && remove(last.name, last.value)}
      />
      {fault && (
        <p class="fault" role="alert">
          {fault}
        </p>
      )}
    </div>
  )
}

function split(word: string): { name: string | null; value: string } {
  const match = /^([a-z_A-Z]+)[:=](.*)$/.exec(word)
  return match === null ? { name: null, value: word } : { name: match[1]!, value: match[2]!.trim() }
}

function useSuggestions(fields: readonly FilterField[], text: string): readonly Suggestion[] {
  const { name, value } = split(text)
  const field = fields.find((one) => one.name === name)
  const isExcluded = value.startsWith('!')
  const prefix = isExcluded ? value.slice(1) : value
  const [found, setFound] = useState<{ for: string; values: readonly string[] }>({ for: '', values: [] })
  const asked = useSettled(field?.complete === undefined ? '' : `${field.name}:${prefix}`, TYPING_MS)
  useEffect(() => {
    if (asked === '' || field?.complete === undefined) return
    const abort = new AbortController()
    field.complete(prefix, abort.signal).then(
      (values) => setFound({ for: asked, values }),
      // Without suggestions one can still type.
      () => {},
    )
    return () => abort.abort()
  }, [asked])
  if (field === undefined)
    return fields
      .filter((one) => one.name.includes(text.toLowerCase()))
      .map((one) => ({ key: one.name, label: `${one.name}:`, note: one.meaning, text: `${one.name}:`, isWhole: false }))
  const values = field.values ?? (found.for.startsWith(`${field.name}:`) ? found.values : [])
  return values
    .filter((one) => one.toLowerCase().includes(prefix.toLowerCase()))
    .map((one) => ({ key: one, label: one, text: `${field.name}:${isExcluded ? '!' : ''}${one}`, isWhole: true }))
}
