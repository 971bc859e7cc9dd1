package symbols

// MaxFile limits the size of a file that is read for its symbols, in bytes.
const MaxFile = 512 << 10

// MaxSymbols limits how many symbols one file has.
const MaxSymbols = 5000

// maxName limits the length of a name, in bytes: nobody looks for a longer one.
const maxName = 200

// The kinds of symbols.
const (
	Func      = "func"
	Method    = "method"
	Type      = "type"
	Class     = "class"
	Struct    = "struct"
	Interface = "interface"
	Enum      = "enum"
	Module    = "module"
	Const     = "const"
	Var       = "var"
	Macro     = "macro"
)

// A Symbol is one name that a file declares.
type Symbol struct {
	Name      string
	Kind      string
	Container string // the type, class or module that it belongs to; "" for none
	Line      int    // counted from 1
}
