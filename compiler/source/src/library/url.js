class URLSearchParams {
  list_ = []
  changed_ = false
  #made = true
  constructor(init) {
    this.list_ = urlPairs_(init)
  }
  get(name) {
    const found = this.list_.find((pair) => pair[0] === String(name))
    return found === undefined ? null : found[1]
  }
  getAll(name) {
    return this.list_.filter((pair) => pair[0] === String(name)).map((pair) => pair[1])
  }
  has(name, value) {
    return this.list_.some((pair) => pair[0] === String(name) && (value === undefined || pair[1] === String(value)))
  }
  append(name, value) {
    this.list_.push([String(name), String(value)])
    this.changed_ = true
  }
  set(name, value) {
    const at = this.list_.findIndex((pair) => pair[0] === String(name))
    if (at < 0) this.list_.push([String(name), String(value)])
    else {
      this.list_[at] = [String(name), String(value)]
      this.list_ = this.list_.filter((pair, i) => i <= at || pair[0] !== String(name))
    }
    this.changed_ = true
  }
  delete(name, value) {
    this.list_ = this.list_.filter((pair) => pair[0] !== String(name) || (value !== undefined && pair[1] !== String(value)))
    this.changed_ = true
  }
  sort() {
    this.list_ = this.list_.toSorted((a, b) => a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : 0)
    this.changed_ = true
  }
  entries() {
    return this.list_.map((pair) => [pair[0], pair[1]])
  }
  keys() {
    return this.list_.map((pair) => pair[0])
  }
  values() {
    return this.list_.map((pair) => pair[1])
  }
  forEach(call) {
    for (const [name, value] of this.list_) call(value, name)
  }
  get size() {
    return this.list_.length
  }
  toString() {
    return this.list_.map((pair) => urlForm_(pair[0]) + '=' + urlForm_(pair[1])).join('&')
  }
}
function urlEntries_(params) {
  return params.entries()
}
function urlForm_(text) {
  return encodeURIComponent(text.toWellFormed()).replace(/%20|[!'()~]/g, (c) => c === '%20' ? '+' : '%' + c.charCodeAt(0).toString(16).toUpperCase())
}
function urlPairs_(init) {
  if (init === undefined || init === null) return init === null ? [['null', '']] : []
  const pairs = []
  if (typeof init === 'object') {
    const listed = Array.from(init)
    for (const pair of listed.length > 0 ? listed : Object.entries(init)) {
      if (!Array.isArray(pair) || pair.length !== 2) {
        throw new TypeError('Each query pair must be an iterable [name, value] tuple')
      }
      pairs.push([String(pair[0]), String(pair[1])])
    }
    return pairs
  }
  const text = String(init)
  for (const part of (text.startsWith('?') ? text.slice(1) : text).split('&')) {
    if (part === '') continue
    const at = part.indexOf('=')
    pairs.push([urlUnform_(at < 0 ? part : part.slice(0, at)), urlUnform_(at < 0 ? '' : part.slice(at + 1))])
  }
  return pairs
}
function urlUnform_(text) {
  return urlDecode_(text.replaceAll('+', ' '))
}
function urlDecode_(text) {
  if (!text.includes('%')) return text.toWellFormed()
  return text.toWellFormed().replace(/(?:%[0-9a-fA-F]{2})+/g, (part) => {
    try {
      return decodeURIComponent(part)
    } catch {
      return urlUtf8_(part)
    }
  })
}
function urlUtf8_(part) {
  const bytes = part.slice(1).split('%').map((hex) => parseInt(hex, 16))
  let text = ''
  let i = 0
  while (i < bytes.length) {
    const first = bytes[i]
    const most = first < 0x80 ? 1 : first < 0xC2 ? 0 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : first < 0xF5 ? 4 : 0
    let taken = 1
    while (taken < most && i + taken < bytes.length) {
      const next = bytes[i + taken]
      const low = taken > 1 ? 0x80 : first === 0xE0 ? 0xA0 : first === 0xF0 ? 0x90 : 0x80
      const high = taken > 1 ? 0xBF : first === 0xED ? 0x9F : first === 0xF4 ? 0x8F : 0xBF
      if (next < low || next > high) break
      taken++
    }
    if (most === taken) {
      text += decodeURIComponent(bytes.slice(i, i + taken).map((byte) => '%' + byte.toString(16).padStart(2, '0')).join(''))
    } else text += '\ufffd'
    i += taken
  }
  return text
}
class URL {
  #url
  #params = new URLSearchParams('')
  #asked = false
  constructor(given, base) {
    this.#url = urlRecord_(String(given), base === undefined ? null : urlRecord_(String(base), null))
  }
  static canParse(given, base) {
    try {
      urlRecord_(String(given), base === undefined ? null : urlRecord_(String(base), null))
      return true
    } catch (error) {
      if (error.message.startsWith('Invalid URL')) return false
      throw error
    }
  }
  query_() {
    if (!this.#asked || !this.#params.changed_) return this.#url.query
    const text = this.#params.toString()
    return text === '' ? null : text
  }
  get href() {
    return urlText_(this.#url, this.query_())
  }
  get origin() {
    const url = this.#url
    const isTuple = urlPort_(url.scheme) !== undefined && url.scheme !== 'file'
    return isTuple ? url.scheme + '://' + urlHost_(url) : 'null'
  }
  get protocol() {
    return this.#url.scheme + ':'
  }
  get username() {
    return this.#url.user
  }
  get password() {
    return this.#url.password
  }
  get host() {
    return urlHost_(this.#url)
  }
  get hostname() {
    return this.#url.host ?? ''
  }
  set hostname(given) {
    const url = this.#url
    if (url.scheme === 'file') throw new Error('setting the hostname of a file is not supported')
    const isSpecial = urlPort_(url.scheme) !== undefined
    const text = String(given).replace(/[\t\n\r]/g, '').replace(/[?#/].*$/s, '').split(isSpecial ? '\\' : '/')[0]
    const isKept = text === '' && (isSpecial || url.host === null || url.user !== '' || url.password !== '' || url.port !== '')
    if (url.isOpaque || isKept || (!text.startsWith('[') && text.includes(':'))) return
    try {
      url.host = text === '' ? '' : urlDomain_(text, isSpecial)
    } catch (error) {
      if (!error.message.startsWith('Invalid URL')) throw error
    }
  }
  get port() {
    return this.#url.port
  }
  set port(given) {
    const url = this.#url
    if (url.host === null || url.host === '' || url.scheme === 'file') return
    const text = String(given).replace(/[\t\n\r]/g, '')
    const number = text === '' ? -1 : parseInt(text, 10)
    if (text === '') url.port = ''
    else if (/^[0-9]/.test(text) && number <= 65535) {
      url.port = String(number) === urlPort_(url.scheme) ? '' : String(number)
    }
  }
  get pathname() {
    return this.#url.path
  }
  set pathname(given) {
    const url = this.#url
    if (url.isOpaque) return
    const isSpecial = urlPort_(url.scheme) !== undefined
    const text = String(given).replace(/[\t\n\r]/g, '')
    const isRooted = text.startsWith('/') || (isSpecial && text.startsWith('\\'))
    url.path = urlPath_([], isRooted ? text.slice(1) : text, isSpecial, '?#')
  }
  get search() {
    const query = this.query_()
    return query === null || query === '' ? '' : '?' + query
  }
  set search(given) {
    const url = this.#url
    const text = String(given).replace(/[\t\n\r]/g, '')
    const isSpecial = urlPort_(url.scheme) !== undefined
    url.query = text === '' ? null : urlEscape_(text.startsWith('?') ? text.slice(1) : text, isSpecial ? '"#<>\'' : '"#<>')
    this.#params.list_ = urlPairs_(url.query ?? '')
    this.#params.changed_ = false
  }
  get searchParams() {
    if (!this.#asked) {
      this.#params.list_ = urlPairs_(this.#url.query ?? '')
      this.#asked = true
    }
    return this.#params
  }
  get hash() {
    const fragment = this.#url.fragment
    return fragment === null || fragment === '' ? '' : '#' + fragment
  }
  set hash(given) {
    const text = String(given).replace(/[\t\n\r]/g, '')
    this.#url.fragment = text === '' ? null : urlEscape_(text.startsWith('#') ? text.slice(1) : text, '"<>`')
  }
  toString() {
    return urlText_(this.#url, this.query_())
  }
  toJSON() {
    return urlText_(this.#url, this.query_())
  }
}
function urlPort_(scheme) {
  switch (scheme) {
    case 'http': return '80'
    case 'https': return '443'
    case 'ws': return '80'
    case 'wss': return '443'
    case 'ftp': return '21'
    case 'file': return ''
    default: return undefined
  }
}
function urlHost_(url) {
  return (url.host ?? '') + (url.port === '' ? '' : ':' + url.port)
}
function urlText_(url, query) {
  let text = url.scheme + ':'
  if (url.host !== null) {
    text += '//'
    if (url.user !== '' || url.password !== '') {
      text += url.user + (url.password === '' ? '' : ':' + url.password) + '@'
    }
    text += urlHost_(url)
  } else if (!url.isOpaque && url.path.startsWith('//')) text += '/.'
  text += url.path
  if (query !== null) text += '?' + query
  if (url.fragment !== null) text += '#' + url.fragment
  return text
}
function urlEscape_(text, signs) {
  let made = ''
  for (const c of text) {
    if (c > ' ' && c <= '~' && !signs.includes(c)) made += c
    else if (c <= '~' && c > ' ') made += '%' + c.charCodeAt(0).toString(16).toUpperCase()
    else made += encodeURIComponent(c.toWellFormed())
  }
  return made
}
function urlInvalid_() {
  throw Object.assign(new TypeError('Invalid URL'), { code: 'ERR_INVALID_URL' })
}
function urlPath_(start, text, isSpecial, signs) {
  const path = start
  const parts = (isSpecial ? text.replaceAll('\\', '/') : text).split('/')
  parts.forEach((part, i) => {
    const isLast = i === parts.length - 1
    const dots = part.toLowerCase().replaceAll('%2e', '.')
    if (dots === '..') path.pop()
    if (dots === '.' || dots === '..') {
      if (isLast) path.push('')
    } else path.push(urlEscape_(part, '"`{}<>' + signs))
  })
  return '/' + path.join('/')
}
function urlDomain_(given, isSpecial) {
  if (given.startsWith('[')) throw new Error('a URL with an IPv6 address is not supported')
  if (!isSpecial) {
    if (/[\0\t\n\r #/:<>?@[\\\]^|]/.test(given)) urlInvalid_()
    let made = ''
    for (const c of given) made += c >= ' ' && c <= '~' ? c : encodeURIComponent(c.toWellFormed())
    return made
  }
  const host = urlDecode_(given).toLowerCase()
  if (/[^\0-\x7f]/.test(host) || /(?:^|\.)xn--/.test(host)) {
    throw new Error('a URL with a host beyond ASCII is not supported')
  }
  if (host === '' || /[\0- "#%/:<>?@[\\\]^`{|}\x7f]/.test(host)) urlInvalid_()
  const labels = host.split('.')
  if (labels.length > 1 && labels[labels.length - 1] === '') labels.pop()
  if (!/^(?:[0-9]+|0x[0-9a-f]*)$/.test(labels[labels.length - 1])) return host
  if (labels.length > 4) urlInvalid_()
  const numbers = labels.map((label) => {
    if (/^0x[0-9a-f]*$/.test(label)) return label === '0x' ? 0 : parseInt(label.slice(2), 16)
    if (/^0[0-7]+$/.test(label)) return parseInt(label, 8)
    if (!/^(?:0|[1-9][0-9]*)$/.test(label)) urlInvalid_()
    return Number(label)
  })
  const last = numbers[numbers.length - 1]
  if (numbers.slice(0, -1).some((n) => n > 255) || last >= 256 ** (5 - numbers.length)) urlInvalid_()
  let address = last
  numbers.slice(0, -1).forEach((n, i) => { address += n * 256 ** (3 - i) })
  return [3, 2, 1, 0].map((i) => Math.floor(address / 256 ** i) % 256).join('.')
}
function urlRecord_(given, base) {
  let rest = given.replace(/^[\0- ]+|[\0- ]+$/g, '').replace(/[\t\n\r]/g, '')
  const url = {
    scheme: '', user: '', password: '', host: null, port: '', path: '', query: null, fragment: null, isOpaque: false,
  }
  const hash = rest.indexOf('#')
  if (hash >= 0) {
    url.fragment = urlEscape_(rest.slice(hash + 1), '"<>`')
    rest = rest.slice(0, hash)
  }
  const scheme = /^([a-zA-Z][a-zA-Z0-9+.-]*):/.exec(rest)
  let isRelative = false
  if (scheme !== null) {
    url.scheme = scheme[1].toLowerCase()
    rest = rest.slice(scheme[0].length)
    isRelative = base !== null && base.scheme === url.scheme && urlPort_(url.scheme) !== undefined && !/^[/\\]/.test(rest)
    if (base !== null && base.scheme === url.scheme && urlPort_(url.scheme) !== undefined && /^(?:[/\\][^/\\]|[/\\]$|\\|\/\\)/.test(rest)) isRelative = true
  } else {
    if (base === null) return urlInvalid_()
    url.scheme = base.scheme
    if (base.isOpaque) {
      if (rest !== '' || hash < 0) return urlInvalid_()
      return { ...base, fragment: url.fragment }
    }
    isRelative = true
  }
  const isSpecial = urlPort_(url.scheme) !== undefined
  const mark = rest.indexOf('?')
  const asked = mark < 0 ? null : urlEscape_(rest.slice(mark + 1), isSpecial ? '"#<>\'' : '"#<>')
  if (mark >= 0) rest = rest.slice(0, mark)
  if (isSpecial) rest = rest.replaceAll('\\', '/')
  url.query = asked
  if (url.scheme === 'file' && /^\/{0,3}[a-zA-Z](?:[:|]|%7C)/i.test(rest)) {
    throw new Error('a URL of a file on a drive is not supported')
  }
  if (isRelative && !rest.startsWith('//')) {
    url.user = base.user
    url.password = base.password
    url.host = base.host
    url.port = base.port
    if (rest === '') {
      url.path = base.path
      url.query = asked ?? base.query
      return url
    }
    const start = rest.startsWith('/') ? [] : base.path.slice(1).split('/').slice(0, -1)
    url.path = urlPath_(start, rest.startsWith('/') ? rest.slice(1) : rest, isSpecial, '')
    return url
  }
  if (!isSpecial && !rest.startsWith('//')) {
    if (rest.startsWith('/')) {
      url.path = urlPath_([], rest.slice(1), false, '')
      return url
    }
    url.isOpaque = true
    for (const c of rest) url.path += c >= ' ' && c <= '~' ? c : encodeURIComponent(c.toWellFormed())
    return url
  }
  if (url.scheme === 'file') {
    rest = rest.startsWith('//') ? rest.slice(2) : '/' + rest.replace(/^\//, '')
  } else rest = isSpecial ? rest.replace(/^\/+/, '') : rest.slice(2)
  const slash = rest.indexOf('/')
  let authority = slash < 0 ? rest : rest.slice(0, slash)
  const path = slash < 0 ? null : rest.slice(slash + 1)
  if (url.scheme === 'file') {
    const host = authority === '' ? '' : urlDomain_(authority, true)
    url.host = host === 'localhost' ? '' : host
  } else {
    const at = authority.lastIndexOf('@')
    if (at >= 0) {
      const user = authority.slice(0, at)
      const colon = user.indexOf(':')
      const signs = '"#<>?`{}/:;=@[\\]^|'
      url.user = urlEscape_(colon < 0 ? user : user.slice(0, colon), signs)
      url.password = colon < 0 ? '' : urlEscape_(user.slice(colon + 1), signs)
      authority = authority.slice(at + 1)
      if (authority === '') return urlInvalid_()
    }
    const port = /^(.*?):([0-9]*)$/s.exec(authority)
    if (port !== null && !authority.startsWith('[')) {
      if (port[1] === '') return urlInvalid_()
      if (Number(port[2]) > 65535) return urlInvalid_()
      const text = port[2] === '' ? '' : String(Number(port[2]))
      url.port = text === urlPort_(url.scheme) ? '' : text
      authority = port[1]
    }
    if (isSpecial && authority === '') return urlInvalid_()
    url.host = authority === '' ? '' : urlDomain_(authority, isSpecial)
  }
  url.path = path === null ? (isSpecial ? '/' : '') : urlPath_([], path, isSpecial, '')
  return url
}
