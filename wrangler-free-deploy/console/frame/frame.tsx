/** The frame around all pages: search, menu, time window, theme. */
import type { ComponentType } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { useIsRefused } from '../api/session.ts'
import { PAGES, type PageEntry, type PageProps } from '../pages/index.ts'
import { Empty, Loading, NotLoaded } from '../parts/states.tsx'
import { href, usePlace } from '../place.ts'
import { SearchBox } from './search-box.tsx'
import { applyTheme, storedTheme, THEMES, type Theme } from './theme.ts'
import { TokenPage } from './token-page.tsx'
import { WindowPicker } from './window-picker.tsx'

export function Frame() {
  const { segments } = usePlace()
  const [name = '', ...rest] = segments
  const entry = Object.hasOwn(PAGES, name) ? PAGES[name] : undefined
  const isRefused = useIsRefused()
  const [isMenuOpen, setMenuOpen] = useState(false)
  const isFirst = useRef(true)
  useEffect(() => {
    document.title =
      entry === undefined ? 'Telemetry console' : `${[...rest.slice(-1), entry.title].join(' · ')} · Telemetry console`
    setMenuOpen(false)
    // Moves the focus to the new page, so that screen readers and Tab continue there; not for the first page of a
    // visit.
    if (isFirst.current) isFirst.current = false
    else document.getElementById('page')?.focus({ preventScroll: true })
  }, [segments.join('/')])
  if (isRefused) return <TokenPage />
  return (
    <>
      <a class="skip" href="#page">
        Skip to the page
      </a>
      <header class="top">
        <a class="brand" href={href([])}>
          Telemetry
        </a>
        <button
          type="button"
          class="menu-button"
          aria-expanded={isMenuOpen}
          aria-controls="menu"
          onClick={() => setMenuOpen(!isMenuOpen)}
        >
          Menu
        </button>
        <SearchBox />
        {entry?.hasWindow && <WindowPicker />}
      </header>
      <nav id="menu" class={isMenuOpen ? 'menu open' : 'menu'} aria-label="Pages">
        <ul>
          {Object.entries(PAGES)
            .filter(([, { isListed }]) => isListed)
            .map(([segment, { title }]) => (
              <li key={segment}>
                <a href={href(segment === '' ? [] : [segment])} aria-current={isOf(segment, name) ? 'page' : undefined}>
                  {title}
                </a>
              </li>
            ))}
        </ul>
        <ThemePicker />
      </nav>
      <main id="page" tabIndex={-1}>
        {entry === undefined ? (
          <>
            <h1>There is no such page</h1>
            <Empty title="The address is mistyped, or of another release">
              <a href={href([])}>Go to the start</a>
            </Empty>
          </>
        ) : (
          <Loaded key={name} entry={entry} rest={rest} />
        )}
      </main>
    </>
  )
}

/** The page of one image belongs to `images` in the menu, that of one vulnerability to `vulnerabilities`. */
function isOf(listed: string, name: string): boolean {
  return listed === name || (name !== '' && (listed === `${name}s` || listed === name.replace(/y$/, 'ies')))
}

function Loaded({ entry, rest }: { entry: PageEntry; rest: readonly string[] }) {
  const [page, setPage] = useState<{ Page: ComponentType<PageProps> } | null>(null)
  const [error, setError] = useState<Error | null>(null)
  useEffect(() => {
    entry.load().then(({ default: Page }) => setPage({ Page }), setError)
  }, [entry])
  if (error !== null)
    return (
      <>
        <h1>{entry.title}</h1>
        <NotLoaded error={error} />
      </>
    )
  return page === null ? <Loading /> : <page.Page rest={rest} />
}

function ThemePicker() {
  const [theme, setTheme] = useState(storedTheme)
  return (
    <label class="theme">
      Theme{' '}
      <select
        value={theme}
        onChange={({ currentTarget }) => {
          applyTheme(currentTarget.value as Theme)
          setTheme(currentTarget.value as Theme)
        }}
      >
        {THEMES.map((one) => (
          <option key={one}>{one}</option>
        ))}
      </select>
    </label>
  )
}
