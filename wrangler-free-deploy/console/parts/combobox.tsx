/** A text field with suggestions, by the combobox pattern of ARIA: arrows choose, Enter takes, Escape closes. */
import type { ComponentChildren, Ref } from 'preact'
import { useEffect, useId, useState } from 'preact/hooks'

export interface Option {
  readonly key: string
  readonly label: ComponentChildren
  /** A word about it, such as its kind. */
  readonly note?: string
}

export interface ComboboxProps<O extends Option> {
  readonly label: string
  readonly placeholder: string
  readonly text: string
  readonly options: readonly O[]
  readonly onText: (text: string) => void
  /** An option was taken, or null: Enter without one. */
  readonly onTake: (option: O | null) => void
  /** Backspace in an empty field. */
  readonly onBackspace?: () => void
  readonly inputRef?: Ref<HTMLInputElement>
  /** Shown below the options, as how many more there are. */
  readonly note?: ComponentChildren
  /** Whether Enter takes the first option where none was chosen by the arrows. */
  readonly takesFirst?: boolean
}

export function Combobox<O extends Option>(props: ComboboxProps<O>) {
  const { label, placeholder, text, options, onText, onTake, onBackspace, inputRef, note, takesFirst = false } = props
  const id = useId()
  const [isOpen, setOpen] = useState(false)
  const [active, setActive] = useState(-1)
  const isShown = isOpen && (options.length > 0 || note !== undefined)
  useEffect(() => setActive(-1), [text])
  const take = (option: O | null) => {
    setOpen(false)
    onTake(option)
  }
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
      event.preventDefault()
      const step = event.key === 'ArrowDown' ? 1 : -1
      setOpen(true)
      if (options.length > 0) setActive((index) => (index + step + options.length) % options.length)
    } else if (event.key === 'Enter') {
      event.preventDefault()
      take(options[active] ?? (takesFirst ? options[0] : undefined) ?? null)
    } else if (event.key === 'Escape') {
      if (isShown) setOpen(false)
      else onText('')
    } else if (event.key === 'Backspace' && text === '') onBackspace?.()
  }
  return (
    <div class="combobox">
      <input
        type="text"
        role="combobox"
        aria-label={label}
        aria-expanded={isShown}
        aria-controls={`${id}-list`}
        aria-autocomplete="list"
        aria-activedescendant={isShown && active >= 0 ? `${id}-${active}` : undefined}
        autoComplete="off"
        autoCapitalize="off"
        spellcheck={false}
        placeholder={placeholder}
        value={text}
        ref={inputRef ?? null}
        onInput={(event) => {
          setOpen(true)
          onText(event.currentTarget.value)
        }}
        onFocus={() => setOpen(true)}
        onBlur={() => setOpen(false)}
        onKeyDown={onKeyDown}
      />
      <div id={`${id}-list`} role="listbox" aria-label={label} class="options" hidden={!isShown}>
        {isShown &&
          options.map((option, index) => (
            // biome-ignore lint/a11y/useFocusableInteractive: the focus stays in the field, which names the active option
            // biome-ignore lint/a11y/useKeyWithClickEvents: the field handles the keys
            <div
              key={option.key}
              id={`${id}-${index}`}
              role="option"
              aria-selected={index === active}
              class={index === active ? 'option active' : 'option'}
              // The field would lose the focus, and close the list, before the click arrives.
              onMouseDown={(event) => event.preventDefault()}
              onClick={() => take(option)}
            >
              <span class="clip">{option.label}</span>
              {option.note && <span class="faint">{option.note}</span>}
            </div>
          ))}
      </div>
      {isShown && note !== undefined && <div class="options-note">{note}</div>}
    </div>
  )
}
