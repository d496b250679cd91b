/** A text field with suggestions, by the combobox pattern of ARIA: arrows choose, Enter takes, Escape closes. */
import type { ComponentChildren, Ref } from 'preact'
import { useEffect, useId, useState } from 'preact/hooks'

const count = new Intl.NumberFormat()

export interface Option {
  readonly key: string
  readonly label: ComponentChildren
  /** A short note, such as its kind. */
  readonly note?: string
  /** The option is only the beginning of a value: the list stays open after it is chosen. */
  readonly isBeginning?: boolean
}

export interface ComboboxProps<O extends Option> {
  readonly label: string
  readonly placeholder: string
  readonly text: string
  readonly options: readonly O[]
  readonly onText: (text: string) => void
  /** Called with the chosen option, or with null for Enter without one. */
  readonly onTake: (option: O | null) => void
  /** Called on Escape while no list is open; by default the field is cleared. */
  readonly onEscape?: () => void
  /** Called on Backspace in an empty field. */
  readonly onBackspace?: () => void
  readonly inputRef?: Ref<HTMLInputElement>
  /** Shown below the options, for example how many more there are. */
  readonly note?: ComponentChildren
  /** Whether Enter takes the first option if none is selected. */
  readonly takesFirst?: boolean
}

export function Combobox<O extends Option>(props: ComboboxProps<O>) {
  const {
    label,
    placeholder,
    text,
    options,
    onText,
    onTake,
    onEscape,
    onBackspace,
    inputRef,
    note,
    takesFirst = false,
  } = props
  const id = useId()
  const [isOpen, setOpen] = useState(false)
  const [chosen, setChosen] = useState({ text, index: -1 })
  // The selection belongs to the options of one text.
  const active = chosen.text === text ? chosen.index : -1
  const isShown = isOpen && (options.length > 0 || note !== undefined)
  // The list can be longer than its visible part.
  useEffect(() => {
    if (active >= 0) document.getElementById(`${id}-${active}`)?.scrollIntoView({ block: 'nearest' })
  }, [active])
  const take = (option: O | null) => {
    setOpen(option?.isBeginning === true)
    onTake(option)
  }
  const move = (step: number) => {
    setOpen(true)
    const from = active < 0 && step < 0 ? 0 : active
    if (options.length > 0) setChosen({ text, index: (from + step + options.length) % options.length })
  }
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
      event.preventDefault()
      move(event.key === 'ArrowDown' ? 1 : -1)
    } else if (event.key === 'Enter') {
      event.preventDefault()
      take(options[isShown ? active : -1] ?? (takesFirst ? options[0] : undefined) ?? null)
    } else if (event.key === 'Tab' && isShown && active >= 0) {
      event.preventDefault()
      take(options[active] ?? null)
    } else if (event.key === 'Escape' && (isShown || text !== '')) {
      // Otherwise Escape would also close a panel of the page.
      event.preventDefault()
      if (isShown) setOpen(false)
      else (onEscape ?? (() => onText('')))()
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
        onClick={() => setOpen(true)}
        onBlur={() => setOpen(false)}
        onKeyDown={onKeyDown}
      />
      <div class="popup" hidden={!isShown}>
        <div id={`${id}-list`} role="listbox" aria-label={label} class="options">
          {isShown &&
            options.map((option, index) => (
              // biome-ignore lint/a11y/useFocusableInteractive: the focus stays in the field
              // biome-ignore lint/a11y/useKeyWithClickEvents: the field handles the keys
              <div
                key={option.key}
                id={`${id}-${index}`}
                role="option"
                aria-selected={index === active}
                class={index === active ? 'option active' : 'option'}
                // Otherwise the field would lose the focus and close the list before the click arrives.
                onMouseDown={(event) => event.preventDefault()}
                onClick={() => take(option)}
              >
                <span class="option-label">{option.label}</span>
                {option.note && <span class="faint">{option.note}</span>}
              </div>
            ))}
        </div>
        {note !== undefined && <div class="options-note">{note}</div>}
      </div>
      <span class="unseen" role="status">
        {isShown && options.length > 0
          ? `${count.format(options.length)} ${options.length === 1 ? 'suggestion' : 'suggestions'}`
          : ''}
        {isShown && note}
      </span>
    </div>
  )
}
