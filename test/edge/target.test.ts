import assert from 'node:assert/strict'
import test from 'node:test'
import { methodsOf, readTarget } from '../../wrangler-free-deploy/edge/target.ts'

const read = (raw: string, base = '/api') => {
  const { path, search } = readTarget(raw, base)
  return path + search
}
/** The rule that a target breaks. */
const rule = (raw: string, base = '/api') => {
  try {
    readTarget(raw, base)
  } catch (error) {
    const { status, message } = error as { status: number; message: string }
    assert.equal(status, 400)
    return message
  }
  assert.fail(`${raw} was let in`)
}

for (const [raw, forwarded] of [
  ['/pod/info', '/pod/info'],
  ['/api/pod/info', '/pod/info'],
  ['/api/api/pod', '/api/pod'],
  ['/', '/'],
  ['/?x', '/?x'],
  ['/api', '/'],
  ['/api?x', '/?x'],
  ['/apis/pod', '/apis/pod'],
  ['/apix', '/apix'],
  ['/a', '/a'],
  ['/pod/ip/fd00::1', '/pod/ip/fd00::1'],
  ['/images/sha256:0a', '/images/sha256:0a'],
  ["/-._~!$&'()*+,;=:@", "/-._~!$&'()*+,;=:@"],
  ['/a.b/.c/d.', '/a.b/.c/d.'],
  ['/pod/info?', '/pod/info?'],
  ['/api/pod/info?include_dead=false', '/pod/info?include_dead=false'],
  ['/x?at=2026-01-01T00:00:00%2B00:00&y=%2e%2e/../%00', '/x?at=2026-01-01T00:00:00%2B00:00&y=%2e%2e/../%00'],
  ['/x?a=/api//b?c[]={|}^`<>"', '/x?a=/api//b?c[]={|}^`<>"'],
] as const) {
  test(`${raw} is forwarded as ${forwarded}`, () => assert.equal(read(raw), forwarded))
}

for (const [raw, word] of [
  ['', 'begins with /'],
  ['*', 'begins with /'],
  ['pod/info', 'begins with /'],
  ['?x', 'begins with /'],
  ['http://broker/pod/info', 'begins with /'],
  ['edge:443', 'begins with /'],
  ['//', 'empty segments'],
  ['//pod/info', 'empty segments'],
  ['/pod//info', 'empty segments'],
  ['/pod/info/', 'empty segments'],
  ['/pod/info/?x', 'empty segments'],
  ['/api/', 'empty segments'],
  ['/api//pod', 'empty segments'],
  ['/%70od/info', '%'],
  ['/pod/%2e%2e/info', '%'],
  ['/pod/%', '%'],
  ['/../etc', '..'],
  ['/pod/..', '..'],
  ['/pod/..;/x', '..'],
  ['/pod/a..b', '..'],
  ['/pod/...', '..'],
  ['/./pod', '. as a segment'],
  ['/pod/.', '. as a segment'],
  ['/pod/./info', '. as a segment'],
  ['/pod\\info', 'a segment'],
  ['/pod/info#x', 'a segment'],
  ['/pod/in fo', 'a segment'],
  ['/pod/in\tfo', 'a segment'],
  ['/pod/in\0fo', 'a segment'],
  ['/pod/in\u007ffo', 'a segment'],
  ['/pod/inf\u00f6', 'a segment'],
  ['/pod/{x}', 'a segment'],
  ['/pod/[x]', 'a segment'],
  ['/pod/"x"', 'a segment'],
  ['/pod/a|b', 'a segment'],
  ['/x?a#b', 'query'],
  ['/x?a\\b', 'query'],
  ['/x?a b', 'query'],
  ['/x?a\nb', 'query'],
  ['/x?\u00e9', 'query'],
] as const) {
  test(`${JSON.stringify(raw)} is refused by the rule about ${word}`, () =>
    assert.ok(rule(raw).includes(word), rule(raw)))
}

test('without a base path the target is forwarded unchanged', () => {
  assert.equal(read('/api/pod/info', ''), '/api/pod/info')
  assert.equal(read('/api', ''), '/api')
})

test('a base path may have several segments', () => {
  assert.equal(read('/ui/broker/pod/info?x', '/ui/broker'), '/pod/info?x')
  assert.equal(read('/ui/pod/info', '/ui/broker'), '/ui/pod/info')
})

test('only an export may be posted', () => {
  for (const path of ['/seccomp/profiles/shop/Deployment/web/export', '/seccomp/profiles/a/b/export/export'])
    assert.deepEqual(methodsOf(path), ['GET', 'HEAD', 'POST'], path)
  for (const path of [
    '/seccomp/profiles/shop/Deployment/web',
    '/seccomp/profiles/shop/web/export',
    '/seccomp/profiles/a/b/c/d/export',
    '/seccomp/profiles/a/b/c/export/x',
    '/seccomp/profiles/a/b/c/exports',
    '/x/seccomp/profiles/a/b/c/export',
    '/Seccomp/profiles/a/b/c/export',
    '/workloads/shop/Deployment/web/export',
    // Only for the console, which this proxy does not serve.
    '/networkpolicy/try',
    '/pod/spec',
  ])
    assert.deepEqual(methodsOf(path), ['GET', 'HEAD'], path)
})
