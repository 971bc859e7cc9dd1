package symbols

import (
	"go/ast"
	"go/parser"
	gotoken "go/token"
)

// findGo finds the symbols of a Go file. In a file with syntax errors it finds those that Go's parser understands.
func findGo(src string) []Symbol {
	files := gotoken.NewFileSet()
	file, _ := parser.ParseFile(files, "", src, parser.SkipObjectResolution|parser.AllErrors)
	if file == nil {
		return nil
	}
	r := goReader{files: files}
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			r.addFunc(d)
		case *ast.GenDecl:
			for _, s := range d.Specs {
				r.addSpec(d.Tok, s)
			}
		}
	}
	return r.found
}

// goReader collects the symbols of one Go file.
type goReader struct {
	files *gotoken.FileSet
	found []Symbol
}

func (r *goReader) add(name *ast.Ident, kind, container string) {
	if name != nil && name.Name != "_" && name.Name != "" {
		line := r.files.PositionFor(name.Pos(), false).Line
		r.found = append(r.found, Symbol{name.Name, kind, container, line})
	}
}

func (r *goReader) addFunc(d *ast.FuncDecl) {
	if d.Recv == nil || len(d.Recv.List) == 0 {
		r.add(d.Name, Func, "")
		return
	}
	r.add(d.Name, Method, receiver(d.Recv.List[0].Type))
}

// receiver returns the type that a function is a method of.
func receiver(of ast.Expr) string {
	for {
		switch t := of.(type) {
		case *ast.StarExpr:
			of = t.X
		case *ast.ParenExpr:
			of = t.X
		case *ast.IndexExpr:
			of = t.X
		case *ast.IndexListExpr:
			of = t.X
		case *ast.Ident:
			return t.Name
		default:
			return ""
		}
	}
}

func (r *goReader) addSpec(of gotoken.Token, s ast.Spec) {
	switch s := s.(type) {
	case *ast.TypeSpec:
		r.addType(s)
	case *ast.ValueSpec:
		kind := Var
		if of == gotoken.CONST {
			kind = Const
		}
		for _, name := range s.Names {
			r.add(name, kind, "")
		}
	}
}

// addType adds a type and, for an interface, its methods.
func (r *goReader) addType(s *ast.TypeSpec) {
	switch t := s.Type.(type) {
	case *ast.StructType:
		r.add(s.Name, Struct, "")
	case *ast.InterfaceType:
		r.add(s.Name, Interface, "")
		for _, m := range t.Methods.List {
			for _, name := range m.Names {
				r.add(name, Method, s.Name.Name)
			}
		}
	default:
		r.add(s.Name, Type, "")
	}
}
