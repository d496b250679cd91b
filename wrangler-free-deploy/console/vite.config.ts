/** The build of the console: `npm run build` calls it, and the broker and the edge proxy serve its output. */
import { defineConfig } from 'vite'

export default defineConfig({
  root: import.meta.dirname,
  base: '/console/',
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  build: {
    target: 'es2022',
    // The first with `light-dark()`: what would replace it for older ones follows the system, not the chosen theme.
    cssTarget: ['chrome123', 'firefox120', 'safari17.5'],
    // The content security policy allows no inline data.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    emptyOutDir: true,
  },
  worker: { format: 'es' },
  // `npm run console:dev` shows changes at once; what is not the console comes from the broker.
  server: { proxy: { '^/(?!console/)': process.env.BROKER_URL ?? 'http://localhost:9090' } },
})
