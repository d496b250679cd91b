import assert from 'node:assert/strict'
import test from 'node:test'
import { expandedName, isPlainName, repositoryOfReference, spellingsOf } from '../../lib/admission/repository.ts'
import { digestOf } from '../support/images.ts'

test('the repository is the reference without tag and digest', () => {
  const digest = digestOf('x')
  for (const [reference, repository] of [
    ['nginx', 'nginx'],
    ['nginx:1.27', 'nginx'],
    [`nginx@${digest}`, 'nginx'],
    [`nginx:1.27@${digest}`, 'nginx'],
    ['library/nginx:1', 'library/nginx'],
    ['registry.test:5000/team/app', 'registry.test:5000/team/app'],
    ['registry.test:5000/team/app:v1', 'registry.test:5000/team/app'],
    [`registry.test:5000/team/app:v1@${digest}`, 'registry.test:5000/team/app'],
    ['localhost/app:v1', 'localhost/app'],
    [' nginx:1 ', 'nginx'],
    [digest, ''],
    [`sha512:${'0'.repeat(128)}`, ''],
    ['sha256:abc', 'sha256'],
    ['malformed_reference', ''],
    ['', ''],
    ['@x', ''],
    [':v1', ''],
  ] as const)
    assert.equal(repositoryOfReference(reference), repository, reference)
})

test('Docker Hub has six spellings of a library image, three of any other; another registry has one', () => {
  assert.deepEqual(spellingsOf('docker.io/library/nginx').sort(), [
    'docker.io/library/nginx',
    'docker.io/nginx',
    'index.docker.io/library/nginx',
    'index.docker.io/nginx',
    'library/nginx',
    'nginx',
  ])
  assert.deepEqual(spellingsOf('docker.io/team/app').sort(), [
    'docker.io/team/app',
    'index.docker.io/team/app',
    'team/app',
  ])
  assert.deepEqual(spellingsOf('registry.test/library/app'), ['registry.test/library/app'])
  assert.deepEqual(spellingsOf('docker.io.test/a'), ['docker.io.test/a'])
})

test('every spelling of a name expands to the one of policy-controller', () => {
  for (const one of spellingsOf('docker.io/library/nginx'))
    assert.equal(expandedName(one), 'index.docker.io/library/nginx', one)
  for (const one of spellingsOf('docker.io/team/app')) assert.equal(expandedName(one), 'index.docker.io/team/app', one)
  for (const [name, expanded] of [
    ['a/b/c', 'index.docker.io/a/b/c'],
    ['localhost/nginx', 'localhost/nginx'],
    ['localhost', 'index.docker.io/library/localhost'],
    ['registry.test/nginx', 'registry.test/nginx'],
    ['registry:5000/nginx', 'registry:5000/nginx'],
    ['registry.test/docker.io/x', 'registry.test/docker.io/x'],
    ['registry-1.docker.io/library/nginx', 'registry-1.docker.io/library/nginx'],
    ['docker.io.test/a', 'docker.io.test/a'],
  ] as const)
    assert.equal(expandedName(name), expanded)
})

test('a text that an engine could read as a pattern or refuse is no plain name', () => {
  for (const name of [
    'docker.io/library/nginx',
    'registry.test:5000/a/b_c--d.e',
    'A/b',
    'a',
    'localhost/a',
    '10.0.0.1:5000/a__b',
    'a_b/c',
  ])
    assert.ok(isPlainName(name), name)
  const odd = [
    '',
    '*',
    'a/**',
    'a?',
    'a[b]',
    'a{b,c}',
    'a!b',
    'a\\b',
    'a b',
    'a@b',
    'a#b',
    'a\n',
    'é',
    'a\u2028',
    "a'b",
    'a"b',
    'a,b',
    'a$',
    'a(b)',
    '~a',
    'a%2fb',
    ...[
      'registry.test:5000/a:v1',
      'a:v1',
      'a/b:5000/c',
      'a:b/c',
      'a:5000',
      'a:/b',
      '/a',
      'a/',
      'a//b',
      '..',
      '../a',
      'a/.b',
      'a-',
      '[::1]:5000/a',
    ],
  ]
  for (const name of odd) assert.ok(!isPlainName(name), name)
})
