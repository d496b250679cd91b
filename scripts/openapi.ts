// Writes openapi.json from the mounted routes.
import { writeFileSync } from 'node:fs'
import { routes } from '../handlers/router.ts'
import { openApi } from '../lib/openapi/index.ts'
import { VERSION } from '../lib/version.ts'

writeFileSync(new URL('../openapi.json', import.meta.url), `${JSON.stringify(openApi(routes, VERSION), null, 2)}\n`)
