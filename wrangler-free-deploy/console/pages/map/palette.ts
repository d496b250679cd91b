/** The colours of the drawing, read from the style sheet: a canvas does not resolve CSS variables or `light-dark()`. */

const NAMES = ['ground', 'ground-raised', 'line-strong', 'text', 'faint', 'accent', 'accent-ground', 'bad'] as const
const MORE = ['warn', 'warn-ground', 'info', 'info-ground'] as const
type Name = (typeof NAMES | typeof MORE)[number]

export type Palette = Readonly<Record<Name, string>> & { readonly font: string }

const FORCED: Readonly<Record<Name, string>> = {
  ground: 'Canvas',
  'ground-raised': 'Canvas',
  'line-strong': 'CanvasText',
  text: 'CanvasText',
  faint: 'CanvasText',
  accent: 'LinkText',
  'accent-ground': 'Canvas',
  bad: 'Highlight',
  warn: 'CanvasText',
  'warn-ground': 'Canvas',
  info: 'CanvasText',
  'info-ground': 'Canvas',
}

const DARK = '(prefers-color-scheme: dark)'
const FORCED_COLORS = '(forced-colors: active)'

/** `probe` is an empty element: its colour is set to each variable in turn, and the resolved value is read back. */
export function readPalette(probe: HTMLElement): Palette {
  const style = getComputedStyle(probe)
  const isForced = window.matchMedia(FORCED_COLORS).matches
  const resolved = [...NAMES, ...MORE].map((name) => {
    probe.style.color = `var(--${name})`
    return [name, isForced ? FORCED[name] : style.color] as const
  })
  return { ...(Object.fromEntries(resolved) as Record<Name, string>), font: style.fontFamily }
}

/** Calls back when the theme of the system or of the page changes. Returns a function that stops it. */
export function onThemeChange(changed: () => void): () => void {
  const queries = [DARK, FORCED_COLORS].map((query) => window.matchMedia(query))
  const ofPage = new MutationObserver(changed)
  ofPage.observe(document.documentElement, { attributeFilter: ['style', 'class'] })
  for (const query of queries) query.addEventListener('change', changed)
  return () => {
    ofPage.disconnect()
    for (const query of queries) query.removeEventListener('change', changed)
  }
}
