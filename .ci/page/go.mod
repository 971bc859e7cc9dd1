// The page's builder has a module of its own, so that esbuild stays out of the
// application's. It is used by `go generate ./channels/web/page`.
module parley/ci/page

go 1.26.5

require github.com/evanw/esbuild v0.28.2

require golang.org/x/sys v0.0.0-20220715151400-c0bba94af5f8 // indirect
