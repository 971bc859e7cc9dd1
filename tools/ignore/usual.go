package ignore

import (
	"io/fs"
	"path"
	"slices"
)

// isUsual reports whether a folder is one that programs usually fill, and that is left out although no .gitignore
// names it. A name that people also give to their own folders counts only if a file beside it shows what the folder
// is: Go's vendor and a package named target are code.
func isUsual(dir fs.FS, name string) bool {
	base := path.Base(name)
	if slices.Contains(alwaysUsual(), base) {
		return true
	}
	if base == "venv" || base == "env" {
		return exists(dir, name+"/pyvenv.cfg")
	}
	return slices.ContainsFunc(markerFiles(base), func(file string) bool { return exists(dir, path.Join(path.Dir(name), file)) })
}

// alwaysUsual returns the names of folders that people never use for their own code.
func alwaysUsual() []string {
	return []string{
		"node_modules", "bower_components", ".yarn", ".next", ".nuxt", ".svelte-kit", ".parcel-cache", ".turbo",
		"__pycache__", ".venv", ".tox", ".nox", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".ipynb_checkpoints",
		".gradle", ".bundle", ".terraform", ".hg", ".svn", ".cache",
	}
}

// markerFiles returns the names of files that, beside a folder of that name, show that a program fills the folder.
func markerFiles(base string) []string {
	switch base {
	case "dist", "build":
		return []string{"package.json", "pyproject.toml", "setup.py", "build.gradle", "build.gradle.kts", "CMakeLists.txt"}
	case "out", "coverage":
		return []string{"package.json"}
	case "target":
		return []string{"Cargo.toml", "pom.xml", "build.sbt"}
	case "bin", "obj":
		return []string{"packages.config", "Directory.Build.props"}
	case "vendor":
		return []string{"composer.json", "Gemfile"}
	}
	return nil
}

// exists reports whether there is a file or a folder of that name.
func exists(dir fs.FS, name string) bool {
	_, err := fs.Stat(dir, name)
	return err == nil
}
