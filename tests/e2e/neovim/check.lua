-- The real server in a second, independent client: Neovim 0.11, plain vim.lsp, no plugin.
-- ODYSSEY_SERVER=... ODYSSEY_PYTHON=... nvim --headless -u NONE -i NONE vector_add.py -S check.lua      exits 1 on failure
local passed, failed = 0, 0
local function check(name, ok, extra)
  if ok then passed = passed + 1 else failed = failed + 1 end
  io.stdout:write((ok and 'ok   ' or 'FAIL ') .. name .. (extra and ('  ' .. tostring(extra)) or '') .. '\n')
end

--- Wait until `work` is true; a redraw asks for hints as a person's screen would.
local function eventually(ms, work)
  return vim.wait(ms, function() vim.cmd('redraw'); return work() end, 50)
end

local buffer = vim.api.nvim_get_current_buf()
local file = vim.api.nvim_buf_get_name(buffer)
local notes = {}
vim.lsp.handlers['odyssey/status'] = function(_, params) notes.status = params end
vim.lsp.handlers['odyssey/ledgerAppended'] = function(_, params) notes.seq = params.seq end
local progress = {}
vim.api.nvim_create_autocmd('LspProgress', { callback = function(event) table.insert(progress, event.data.params.value.kind) end })

-- The configuration of docs/editors/neovim.md.
vim.lsp.config('odyssey', {
  cmd = { os.getenv('ODYSSEY_SERVER'), 'lsp' },
  filetypes = { 'python', 'cuda' },
  root_markers = { 'odyssey.toml', '.git', 'pyproject.toml' },
  settings = { odyssey = { python = os.getenv('ODYSSEY_PYTHON'), evaluate = 'save' } },
})
vim.lsp.enable('odyssey')
vim.bo[buffer].filetype = 'python'
vim.cmd('doautocmd FileType python')

local function client() return vim.lsp.get_clients({ bufnr = buffer, name = 'odyssey' })[1] end
check('starts', eventually(20000, function() return client() ~= nil and client().initialized end))
if not client() then vim.cmd('cquit 1') end
vim.lsp.inlay_hint.enable(true, { bufnr = buffer })

local function labels()
  local found = {}
  for _, one in ipairs(vim.lsp.inlay_hint.get({ bufnr = buffer })) do
    local label = one.inlay_hint.label
    table.insert(found, type(label) == 'string' and label or label[1].value)
  end
  return table.concat(found, ' | ')
end
local function set_line(number, text) vim.api.nvim_buf_set_lines(buffer, number - 1, number, false, { text }) end
local function line_of(pattern)
  for number, text in ipairs(vim.api.nvim_buf_get_lines(buffer, 0, -1, false)) do if text:find(pattern, 1, true) then return number end end
end
local function diagnostics(pattern)
  return vim.tbl_filter(function(one) return one.message:find(pattern) end, vim.diagnostic.get(buffer))
end

local lenses
eventually(20000, function()
  vim.lsp.codelens.refresh({ bufnr = buffer })
  vim.wait(100)
  lenses = vim.lsp.codelens.get(buffer)
  return #lenses >= 3
end)
check('lenses above the kernel', #lenses >= 3, lenses[1] and lenses[1].command.title)
check('status notification', eventually(20000, function() return notes.status ~= nil end), notes.status and notes.status.text)

vim.cmd('write')
check('a save is judged, the hint appears', eventually(120000, function() return labels():find('right') ~= nil end), labels())
check('the row was appended', eventually(5000, function() return (notes.seq or 0) >= 1 end), notes.seq)

local hover
vim.lsp.buf_request(buffer, 'textDocument/hover', { textDocument = { uri = vim.uri_from_fname(file) }, position = { line = line_of('def add_kernel') - 1, character = 6 } }, function(_, result) hover = result end)
check('hover card', eventually(10000, function() return hover ~= nil end) and hover.contents.value:find('torch %d') ~= nil)

local store = line_of('tl.store')
set_line(store, '    tl.store(out_ptr + offsets, x - y, mask=mask)')
check('the hint grows old while typing', eventually(10000, function() return labels():find('older') ~= nil end), labels())
vim.cmd('write')
check('a wrong kernel is said to be wrong', eventually(120000, function() return labels():find('older') == nil and labels():find('right 5/5') == nil and labels() ~= '' end), labels())
check('and underlined', eventually(10000, function() return #vim.diagnostic.get(buffer) > 0 end), vim.diagnostic.get(buffer)[1] and vim.diagnostic.get(buffer)[1].message:sub(1, 90))

local offsets = line_of('tl.arange')
set_line(offsets, '    offsets = pid * BLOCK_SIZE + tl.arange(0, 96)')
check('a mistake is found while typing', eventually(20000, function() return #diagnostics('power of') > 0 end), #vim.diagnostic.get(buffer))
set_line(offsets, '    offsets = pid * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)')
check('and its diagnostic goes when it is repaired', eventually(20000, function() return #diagnostics('power of') == 0 end))

local history
client():exec_cmd({ title = 'history', command = 'odyssey.history', arguments = { { uri = vim.uri_from_fname(file), kernel = 'add_kernel' } } }, { bufnr = buffer }, function(_, result) history = result end)
check('history as a Markdown document', eventually(10000, function() return history ~= nil end) and history.rows >= 2 and vim.fn.filereadable(vim.uri_to_fname(history.uri)) == 1)

local asked
client():request('odyssey/ledgerRows', { limit = 10 }, function(_, result) asked = result end, buffer)
check('the ledger answers', eventually(10000, function() return asked ~= nil end) and #asked.rows >= 2, asked and #asked.rows)
check('progress was reported, or everything was quick', #progress == 0 or progress[1] == 'begin', #progress)

local process = client()
process:stop()
check('stops', eventually(10000, function() return process:is_stopped() end))
io.stdout:write(string.format('neovim: %d passed, %d failed, 0 skipped\n', passed, failed))
vim.cmd(failed > 0 and 'cquit 1' or 'qall!')
