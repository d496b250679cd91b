/** Colours for the canvas, read from the style sheet again when the theme changes. */
import { useEffect, useState } from 'preact/hooks'

export interface Palette {
  readonly first: string
  readonly second: string
  readonly third: string
  readonly request: string
  readonly limit: string
  readonly faint: string
  readonly line: string
  readonly font: string
}

const COLOURS = {
  first: '--accent',
  second: '--warn',
  third: '--bad',
  request: '--good',
  limit: '--bad',
  faint: '--faint',
  line: '--line',
} as const

/**
 * The value of a custom property can be `light-dark()`, which a canvas does not take; the computed colour of an element
 * can be used.
 */
function paletteOf(element: HTMLElement): Palette {
  const probe = document.createElement('span')
  element.append(probe)
  const entries = Object.entries(COLOURS).map(([name, property]) => {
    probe.style.color = `var(${property})`
    return [name, getComputedStyle(probe).color] as const
  })
  const { fontFamily } = getComputedStyle(probe)
  probe.remove()
  return { ...(Object.fromEntries(entries) as Record<keyof typeof COLOURS, string>), font: `12px ${fontFamily}` }
}

export function usePalette(element: { readonly current: HTMLElement | null }): Palette | null {
  const [palette, setPalette] = useState<Palette | null>(null)
  useEffect(() => {
    const update = () => element.current !== null && setPalette(paletteOf(element.current))
    update()
    const queries = ['(prefers-color-scheme: dark)', '(forced-colors: active)'].map((query) => matchMedia(query))
    for (const query of queries) query.addEventListener('change', update)
    // The user's choice is set in the style of the root element.
    const observer = new MutationObserver(update)
    observer.observe(document.documentElement, { attributes: true, attributeFilter: ['style'] })
    return () => {
      for (const query of queries) query.removeEventListener('change', update)
      observer.disconnect()
    }
  }, [])
  return palette
}
