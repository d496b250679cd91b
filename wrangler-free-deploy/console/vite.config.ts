/** The build of the console, for `npm run build`. The broker and the edge proxy serve its output. */
import { defineConfig } from 'vite'

export default defineConfig({
  root: import.meta.dirname,
  base: '/console/',
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  build: {
    target: 'es2022',
    // The first versions with `light-dark()`: its polyfill for older ones follows the system, not the chosen theme.
    cssTarget: ['chrome123', 'firefox120', 'safari17.5'],
    // The content security policy allows no inline data.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    emptyOutDir: true,
  },
  worker: { format: 'es' },
  // `npm run console:dev` reloads after changes. Requests outside of `/console/` go to the broker.
  server: { proxy: { '^/(?!console/)': process.env.BROKER_URL ?? 'http://localhost:9090' } },
})
