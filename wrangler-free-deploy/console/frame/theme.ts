/** Light or dark theme: the system's, until the user chooses one. */

const KEY = 'console.theme'
export const THEMES = ['system', 'light', 'dark'] as const
export type Theme = (typeof THEMES)[number]

export function storedTheme(): Theme {
  try {
    const text = window.localStorage.getItem(KEY)
    return THEMES.find((one) => one === text) ?? 'system'
  } catch {
    return 'system' // Storage is off in this browser.
  }
}

export function applyTheme(theme: Theme): void {
  document.documentElement.style.colorScheme = theme === 'system' ? 'light dark' : theme
  try {
    window.localStorage.setItem(KEY, theme)
  } catch {} // Storage is off in this browser.
}
