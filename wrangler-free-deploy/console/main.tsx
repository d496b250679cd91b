import { render } from 'preact'
import { Frame } from './frame/frame.tsx'
import { applyTheme, storedTheme } from './frame/theme.ts'
import { startRouter } from './place.ts'
import './style/tokens.css'
import './style/base.css'
import './style/frame.css'
import './style/parts.css'

applyTheme(storedTheme())
startRouter()
render(<Frame />, document.getElementById('root')!)
