/**
 * Validates policies against the schema of CiliumNetworkPolicy: cilium-schema.mjs FOLDER FILE... where FOLDER has the
 * package @kubernetes-models/cilium installed.
 */
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { load } from 'js-yaml'

const SCHEMA =
  'node_modules/@kubernetes-models/cilium/_schemas/ComGithubCiliumCiliumPkgK8sApisCiliumIoV2CiliumNetworkPolicy.js'

const [folder, ...files] = process.argv.slice(2)
const { validate } = await import(pathToFileURL(resolve(folder, SCHEMA)).href)
const faults = files.filter((file) => {
  if (validate(load(readFileSync(file, 'utf8')))) return false
  process.stderr.write(`${file}: ${JSON.stringify(validate.errors)}\n`)
  return true
})
process.stdout.write(`policies: ${files.length} validated by the schema of Cilium; ${faults.length} faults\n`)
process.exitCode = faults.length > 0 || files.length === 0 ? 1 : 0
