/** The policy page: generate, edit, try and download, by mouse and by keyboard alone. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { after, before, describe, it } from 'node:test'
import type { Browser, Locator, Page } from 'playwright-core'
import type { PolicyTrial } from '../../lib/policies/trial-record.ts'
import { type ConsoleBroker, startConsoleBroker } from './support/broker.ts'
import { evaluate, launch, looksRight, noBrowser, openPage, screenshot, settled } from './support/browser.ts'
import { seededDatabase } from './support/seeded.ts'

const CHECKOUT = 'shop/Deployment/checkout'
/** A workload whose syscall capture is partial. */
const FX_RATES = 'payments/Deployment/fx-rates'
const REFUSED = [/answer (400|404|409): /, /console error: Failed to load resource/]
const MAX_TABS = 80
const WAIT_MS = 30_000
const MAX_REQUESTS = 6
const MAX_BYTES = 300_000

let browser: Browser
let broker: ConsoleBroker

before(async () => {
  if (noBrowser) return
  broker = await startConsoleBroker({ databaseUrl: await seededDatabase('cluster') })
  browser = await launch()
})
after(async () => {
  if (!noBrowser) await broker.stop()
})

const open = (path: string, options: Parameters<typeof openPage>[2] = {}) =>
  openPage(browser, `${broker.url}/console/policy${path}`, options)

const get = async (path: string): Promise<string> => (await fetch(`${broker.url}${path}`)).text()

async function tryIt(text: string, days: number | null): Promise<PolicyTrial> {
  const url = `${broker.url}/networkpolicy/try${days === null ? '' : `?since=${days}d`}`
  const headers = { 'content-type': 'application/yaml' }
  const answer = await fetch(url, { method: 'POST', headers, body: text })
  assert.equal(answer.status, 200)
  return (await answer.json()) as PolicyTrial
}

/** The rendered text, with the line breaks of blocks. */
const seenIn = async (locator: Locator): Promise<string> => (await locator.allInnerTexts()).join('\n')

const editor = (page: Page) => page.getByRole('textbox', { name: 'Policies as YAML' })

/** Waits until an expression is true in the page. Playwright's own wait uses `eval`, which the policy forbids. */
async function holds(page: Page, expression: string): Promise<void> {
  const until = Date.now() + WAIT_MS
  while (!(await evaluate<boolean>(page, `Boolean(${expression})`))) {
    if (Date.now() > until) assert.fail(`never true: ${expression}`)
    await page.waitForTimeout(50)
  }
}

/** Waits until the generated text is there. */
async function generated(page: Page): Promise<string> {
  await holds(
    page,
    `document.querySelector('textarea')?.value.includes('kind: ') || document.querySelector('.refused')`,
  )
  return editor(page).inputValue()
}

async function tried(page: Page): Promise<void> {
  await page.getByRole('button', { name: 'Try it' }).click()
  await holds(page, `document.querySelector('.trial, .untried') && !document.querySelector('.outdated')`)
}

/** The focused element as a screen reader announces it: role or tag, and name. */
const FOCUSED = `(() => {
  const { activeElement: one } = document
  const name = one.getAttribute('aria-label') ?? one.labels?.[0]?.textContent ?? one.textContent ?? ''
  return (one.getAttribute('role') ?? one.type ?? one.tagName).toLowerCase() + ' ' + name.trim()
})()`

async function tabTo(page: Page, wanted: RegExp, key: 'Tab' | 'Shift+Tab' = 'Tab'): Promise<void> {
  const passed: string[] = []
  for (let i = 0; i < MAX_TABS; i++) {
    await page.keyboard.press(key)
    const focused = await evaluate<string>(page, FOCUSED)
    if (wanted.test(focused)) return
    passed.push(focused)
  }
  assert.fail(`${key} never came to ${wanted}: ${passed.join(' | ')}`)
}

/** Changes a label, so that no rule lets checkout reach fx-rates. Returns the text and the changed line. */
function withoutFxRates(text: string): { text: string; line: number } {
  const lines = text.split('\n')
  const line = lines.findIndex((one) => /^\s+[\w./-]+: fx-rates$/.test(one))
  assert.notEqual(line, -1, text)
  return { text: lines.with(line, `${lines[line]}x`).join('\n'), line: line + 1 }
}

describe('policies in the browser', { skip: noBrowser }, () => {
  it('are made, changed, tried and downloaded by keyboard alone', async () => {
    const opened = await open('')
    const { page } = opened
    await tabTo(page, /^combobox Namespace/)
    await page.keyboard.type('sho')
    await page.getByRole('option', { name: 'shop' }).waitFor()
    await page.keyboard.press('ArrowDown')
    await page.keyboard.press('Enter')
    await page.waitForURL('**/console/policy/shop')
    await holds(page, `document.activeElement.getAttribute('aria-label') === 'Workload'`)
    await page.keyboard.type('checkout')
    await page.getByRole('option', { name: 'checkout' }).waitFor()
    await page.keyboard.press('ArrowDown')
    await page.keyboard.press('Enter')
    await page.waitForURL(`**/console/policy/${CHECKOUT}`)

    const text = await generated(page)
    assert.equal(text, await get(`/workloads/${CHECKOUT}/networkpolicy`))
    const changed = withoutFxRates(text)
    await tabTo(page, /^textarea Policies as YAML/)
    await page.keyboard.press('Control+Home')
    for (let line = 1; line < changed.line; line++) await page.keyboard.press('ArrowDown')
    await page.keyboard.press('End')
    await page.keyboard.type('x')
    assert.equal(await editor(page).inputValue(), changed.text)
    await tabTo(page, /^radio 7 days/)
    await tabTo(page, /^button Try it/)
    await page.keyboard.press('Enter')

    const denied = page.getByRole('article')
    await denied.first().waitFor()
    const trial = await tryIt(changed.text, 7)
    assert.deepEqual([trial.denied, trial.deniedEdges[0]!.to.workload], [1, 'Deployment/fx-rates'])
    assert.equal(await denied.count(), 1)
    const told = (await seenIn(denied)).replaceAll(/\s+/g, ' ')
    assert.match(told, /^to payments\/fx-rates Deployment from shop\/checkout Deployment 8080\/TCP · 4 flows/)
    assert.ok(told.includes(trial.deniedEdges[0]!.deniedBy[0]!.why), told)
    const counts = await seenIn(page.locator('.counts'))
    const { evaluated, allowed, unknown } = trial
    assert.equal(counts.replaceAll(/\s+/g, ' '), `judged ${evaluated} allowed ${allowed} denied 1 not known ${unknown}`)

    await tabTo(page, /^button line \d+/)
    await page.keyboard.press('Enter')
    await holds(page, `document.activeElement.tagName === 'TEXTAREA'`)
    const selected = await evaluate<string>(
      page,
      `((area) => area.value.slice(area.selectionStart, area.selectionEnd))(document.activeElement)`,
    )
    assert.match(selected, /^\s+- to:$/)
    await tabTo(page, /^button Download/, 'Shift+Tab')
    const [file] = await Promise.all([page.waitForEvent('download'), page.keyboard.press('Enter')])
    assert.equal(file.suggestedFilename(), 'shop-checkout-deployment-networkpolicy.yaml')
    assert.equal(readFileSync(await file.path(), 'utf8'), changed.text)
    await screenshot(page, 'policy-tried')
    await opened.close()
  })

  it('of all workloads of a namespace are those of the API', async () => {
    const opened = await open('/shop?direction=ingress&cidr=24')
    assert.equal(await generated(opened.page), await get('/namespaces/shop/networkpolicies?direction=ingress&cidr=24'))
    await opened.close()
  })

  it('follow their controls, which stand in the address', async () => {
    const opened = await open(`/${CHECKOUT}`)
    const { page } = opened
    await generated(page)
    await page.getByLabel('Format').selectOption('cilium')
    await page.waitForURL('**/checkout?format=cilium')
    await holds(page, `document.querySelector('textarea').value.includes('CiliumNetworkPolicy')`)
    assert.equal(await editor(page).inputValue(), await get(`/workloads/${CHECKOUT}/networkpolicy?format=cilium`))
    await page.getByRole('radio', { name: '30 days' }).check()
    await page.waitForURL('**/checkout?format=cilium&days=30')
    await page.goBack()
    await holds(page, `!document.querySelector('textarea').value.includes('CiliumNetworkPolicy')`)
    await opened.close()
  })

  it('have an answer that belongs to the text and the days', async () => {
    const opened = await open(`/${CHECKOUT}`)
    const { page } = opened
    const text = await generated(page)
    const outdated = page.getByText('This answer is out of date')
    await tried(page)
    const { allowed } = await tryIt(text, 7)
    await page.getByText('nothing new would be cut off').waitFor()
    assert.match(await seenIn(page.locator('.counts')), new RegExp(`allowed\\s+${allowed}\\b`))
    assert.equal(await outdated.count(), 0)
    await page.getByRole('radio', { name: '30 days' }).check()
    await page.getByText('it is of 7 days').waitFor()
    await tried(page)
    await outdated.waitFor({ state: 'detached' })
    // Edges without a new flow for long are in use, too.
    await page.getByRole('radio', { name: 'all that is kept' }).check()
    await tried(page)
    await page.getByText('nothing seen would be cut off').waitFor()
    const { evaluated } = await tryIt(text, null)
    assert.match(await seenIn(page.locator('.counts')), new RegExp(`judged\\s+${evaluated}\\b`))
    await editor(page).fill(withoutFxRates(text).text)
    await page.getByText('it is of an earlier text').waitFor()
    await page.getByRole('button', { name: 'Back to generated' }).click()
    await outdated.waitFor({ state: 'detached' })
    assert.equal(await editor(page).inputValue(), text)
    await opened.close()
  })

  it('show the changes line by line', async () => {
    const opened = await open(`/${CHECKOUT}`)
    const { page } = opened
    const changed = withoutFxRates(await generated(page))
    await page.getByRole('link', { name: 'Changes' }).click()
    await page.getByText('No line was changed').waitFor()
    await page.getByRole('link', { name: 'Text', exact: true }).click()
    await editor(page).fill(changed.text)
    await page.getByRole('link', { name: 'Changes' }).click()
    await page.waitForURL('**/checkout?view=changes')
    await page.getByText('1 added and 1 removed lines').waitFor()
    const rows = await page.locator('.diff tr.gone, .diff tr.new').allInnerTexts()
    assert.deepEqual(
      rows.map((row) => row.trim().split(/\s+/).slice(0, 2)),
      [
        [`${changed.line}`, '−'],
        [`${changed.line}`, '+'],
      ],
    )
    assert.match(rows[1]!, /: fx-ratesx$/)
    await opened.close()
  })

  it('show the place of an error in the text', async () => {
    const opened = await open(`/${CHECKOUT}`, { allowed: REFUSED })
    const { page } = opened
    const text = await generated(page)
    const wrong = text.replace('port: 5432', 'port: 543200')
    await editor(page).fill(wrong)
    await tried(page)
    const line = wrong.split('\n').findIndex((one) => one.includes('543200')) + 1
    const fault = page.getByRole('alert')
    assert.match(
      await seenIn(fault),
      new RegExp(`^Line ${line}: spec\\.egress\\[\\d+\\].* expected a port, 1 to 65535$`),
    )
    assert.equal(await editor(page).getAttribute('aria-invalid'), 'true')
    assert.equal(await seenIn(page.locator('.line-fault')), `${line}`)
    assert.equal(await evaluate(page, 'document.activeElement.tagName'), 'TEXTAREA')
    await editor(page).fill(`${text}\n  : [`)
    await tried(page)
    await page.getByText('invalid YAML').first().waitFor()
    await editor(page).fill(text)
    assert.equal(await fault.count(), 0)
    await opened.close()
  })

  it('list edges that cannot be judged, with the reason', async () => {
    const opened = await open('')
    const { page } = opened
    const text = [
      ...['apiVersion: networking.k8s.io/v1', 'kind: NetworkPolicy', 'metadata: {name: api, namespace: shop}', 'spec:'],
      ...['  podSelector: {}', '  policyTypes: [Ingress]', '  ingress:'],
      '    - from: [{namespaceSelector: {matchLabels: {team: a}}}]',
    ].join('\n')
    await editor(page).fill(text)
    await tried(page)
    const { unknown, unknownReasons } = await tryIt(text, 7)
    assert.ok(unknown > 0)
    const told = await seenIn(page.getByRole('region', { name: 'Cannot be judged' }))
    for (const { reason } of unknownReasons) assert.ok(told.includes(reason), told)
    await opened.close()
  })

  it('that are refused say why, and are made after a yes', async () => {
    const opened = await open(`/${CHECKOUT}?min_days=300`, { allowed: REFUSED })
    const { page } = opened
    await page.getByText('which is less than 300 days').waitFor()
    const box = page.getByRole('checkbox')
    await box.click()
    await page.waitForURL('**/checkout?min_days=300&acknowledgePartial=true')
    assert.equal(
      await generated(page),
      await get(`/workloads/${CHECKOUT}/networkpolicy?min_days=300&acknowledgePartial=true`),
    )
    await page.getByText('Connections that the workload needs may be missing from this policy').waitFor()
    assert.equal(await evaluate(page, 'document.activeElement.type'), 'checkbox')
    await box.click()
    await page.getByText('which is less than 300 days').waitFor()
    await opened.close()
  })

  it('keep edits and their trial while another page is open, and ask before the tab loses them', async () => {
    const opened = await open(`/${CHECKOUT}`)
    const { page } = opened
    const changed = withoutFxRates(await generated(page))
    await editor(page).fill(changed.text)
    await tried(page)
    const link = page.getByRole('article').getByRole('link', { name: '4 flows' })
    const { searchParams } = new URL((await link.getAttribute('href'))!, broker.url)
    assert.deepEqual(Object.fromEntries(searchParams), {
      ...{ from_workload: CHECKOUT, to_workload: FX_RATES, port: '8080', protocol: 'TCP', verdict: 'ALLOW' },
    })
    const flows = JSON.parse(await get(`/flows?${searchParams}`)) as { items: unknown[] }
    assert.equal(flows.items.length, 4)
    await link.click()
    await page.waitForURL('**/console/flows?*')
    await page.goBack()
    await page.getByRole('article').waitFor()
    assert.equal(await editor(page).inputValue(), changed.text)
    const asked = page.waitForEvent('dialog')
    // The dialog prevents the load, so this ends by its timeout.
    const leaving = page.reload({ timeout: 1_000 }).catch(() => undefined)
    const dialog = await asked
    assert.equal(dialog.type(), 'beforeunload')
    await dialog.dismiss()
    await leaving
    await page.getByRole('button', { name: 'Download' }).click()
    await page.getByText('edited, downloaded').waitFor()
    await page.reload()
    assert.equal(await generated(page), await get(`/workloads/${CHECKOUT}/networkpolicy`))
    await opened.close()
  })

  it('of an unknown workload are not found', async () => {
    const opened = await open('/shop/Deployment/nobody', { allowed: REFUSED })
    await opened.page.getByText('Nothing of this name is stored').waitFor()
    await opened.close()
  })

  it('of images are those of the API, and enforcing ones need a yes', async () => {
    const opened = await open('/payments?tab=admission', { allowed: REFUSED })
    const { page } = opened
    const text = page.getByRole('textbox', { name: 'Admission policies as YAML' })
    await text.waitFor()
    assert.equal(await text.inputValue(), await get('/attestations/policy?format=kyverno&namespace=payments'))
    await page.getByText(/Images that are not covered/).waitFor()
    await page.getByLabel('Mode').selectOption('enforce')
    await page.getByText('An enforcing policy would not cover every running image').waitFor()
    await page.getByRole('checkbox', { name: /no policy would check them/ }).click()
    await text.waitFor()
    assert.equal(
      await text.inputValue(),
      await get('/attestations/policy?format=kyverno&mode=enforce&namespace=payments&acknowledgePartial=true'),
    )
    await page.getByRole('combobox', { name: 'For', exact: true }).selectOption('policy-controller')
    await page.getByText('binds the whole cluster').waitFor()
    await page.getByRole('checkbox', { name: /other namespaces/ }).click()
    await page.waitForURL('**acknowledgeClusterWide=true')
    await text.waitFor()
    assert.match(await text.inputValue(), /kind: ClusterImagePolicy/)
    await opened.close()
  })

  it('of syscalls can be edited, and the edits are stored nowhere', async () => {
    const opened = await open(`/${FX_RATES}?tab=seccomp`, { allowed: REFUSED })
    const { page } = opened
    const text = page.getByRole('textbox', { name: /Seccomp profile as/ })
    await text.waitFor()
    const path = `/seccomp/profiles/${FX_RATES}/export`
    assert.equal(await text.inputValue(), await get(path))
    await page.getByText('capture is partial:').waitFor()
    await page.getByLabel('Also allow').fill('kexec_load, bpf')
    await page.keyboard.press('Enter')
    await holds(page, `document.querySelector('textarea')?.value.includes('- kexec_load')`)
    assert.match(await text.inputValue(), /- bpf\n/)
    assert.ok(!(await get(path)).includes('kexec_load'))
    await page.getByLabel('A syscall that is not listed').selectOption('SCMP_ACT_ERRNO')
    await page.getByText('is partial, and a profile that enforces would block what it missed').waitFor()
    await page.getByRole('checkbox').click()
    await text.waitFor()
    assert.match(await text.inputValue(), /defaultAction: SCMP_ACT_ERRNO/)
    await opened.close()
  })

  it('of a whole profile are listed, with the reason for each that is not available', async () => {
    const opened = await open(`/${CHECKOUT}?tab=export`)
    const { page } = opened
    const table = page.getByRole('table')
    await table.waitFor()
    const rows = await table.locator('tbody tr').allInnerTexts()
    const path = `/workloads/${CHECKOUT}/export?format=zip-manifest`
    const { documents } = JSON.parse(
      await get(`${path}&artifacts=networkpolicy,ciliumnetworkpolicy,seccompprofile,securitycontext,admission`),
    ) as { documents: { fileName: string; reason: string | null; available: boolean; content: string | null }[] }
    assert.equal(rows.length, documents.length)
    for (const [i, { fileName, reason }] of documents.entries()) {
      assert.ok(rows[i]!.startsWith(fileName), rows[i])
      assert.ok(rows[i]!.includes(reason ?? fileName), rows[i])
    }
    await page.getByRole('link', { name: 'seccompprofile.yaml' }).click()
    await page.waitForURL('**document=seccompprofile.yaml')
    const text = page.getByRole('textbox', { name: 'Text of seccompprofile.yaml' })
    assert.match(await text.inputValue(), /kind: SeccompProfile/)
    await page.getByRole('checkbox', { name: 'OpenVEX draft' }).check()
    await page.getByRole('link', { name: /openvex|vex/ }).waitFor()
    await opened.close()
  })

  const SHOWN: readonly (readonly [name: string, path: string])[] = [
    ['start', ''],
    ['network', `/${CHECKOUT}`],
    ['changes', `/${CHECKOUT}?view=changes`],
    ['refused', `/${CHECKOUT}?min_days=300`],
    ['namespace', '/payments'],
    ['admission', '/payments?tab=admission'],
    ['seccomp', `/${FX_RATES}?tab=seccomp`],
    ['export', `/${CHECKOUT}?tab=export`],
  ]
  for (const [name, path] of SHOWN)
    it(`have an accessible page: ${name}`, async () => {
      const opened = await open(path, { allowed: REFUSED })
      const { page } = opened
      await holds(page, `!document.querySelector('.loading')`)
      if (name === 'network') await tried(page)
      if (name === 'network') await editor(page).fill(withoutFxRates(await editor(page).inputValue()).text)
      if (name === 'network') await tried(page)
      await looksRight(page, `policy-${name}`)
      await opened.close()
    })

  it('take few requests and bytes', async () => {
    for (const path of ['', `/${CHECKOUT}`, '/payments?tab=admission', `/${FX_RATES}?tab=seccomp`]) {
      const opened = await open('', { allowed: REFUSED })
      const { page } = opened
      let bytes = 0
      const urls: string[] = []
      page.on('response', async (response) => {
        if (response.url().includes('/console/')) return
        urls.push(response.url())
        bytes += (await response.body().catch(() => Buffer.alloc(0))).length
      })
      await page.goto(`${broker.url}/console/policy${path}`)
      await settled(page)
      assert.ok(urls.length <= MAX_REQUESTS, urls.join('\n'))
      assert.ok(bytes <= MAX_BYTES, `${bytes} bytes: ${urls.join('\n')}`)
      await opened.close()
    }
  })
})
