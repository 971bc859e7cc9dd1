// class Commented {};
#include <vector>
#define MAX_SIDES 12

namespace shapes {

class Forward;
enum class Color : unsigned char { Red, Green };
enum Plain { One, Two = 2 };
using Points = std::vector<int>;
typedef std::map<std::string, int> Names;

const double pi = 3.14;
static int counter = 0;
constexpr int limit = 1'000'000;
std::vector<int> list{1, 2, 3};

template <typename T, class U = std::less<T>>
struct Pair : public Base<T>, private Other {
	T first;
	U second;
	Pair() : first{}, second() {}
	explicit Pair(T a) noexcept(true) : first(a) { }
	~Pair() = default;
	bool operator==(const Pair &o) const { return first == o.first; }
	T &operator[](int i);
	operator bool() const { return true; }
};

class API Shape final : public Base {
public:
	Shape();
	virtual ~Shape();
	virtual double area() const = 0;
	static Shape *make(const std::string &name = "}") { return nullptr; }
	template <typename F> void each(F f) const { f(*this); }
	inline int size() const { return size_; }
	auto begin() -> int * { return nullptr; }

	class Inner {
		void deep() {}
	};

private:
	int size_ = 0;
	std::function<void(int)> callback_;
};

Shape::Shape() : Base(), size_{1} {
	auto f = [this](int x) { return x; };
}

Shape::~Shape() {}

double Shape::area() const
{
	return R"(class Raw { void f() {)" ? 1 : 0;
}

std::vector<std::pair<int, int>> Shape::pairs(std::function<bool(int)> f) {
	struct Local { int a; };
	return {};
}

template <typename T>
T Pair<T>::sum(T a, T b) { return a + b; }

std::ostream &operator<<(std::ostream &out, const Shape &s) { return out; }

bool Shape::operator<(const Shape &other) const { return false; }

static void helper(int a) { if (a) { while (true) {} } }

namespace {
int hidden() { return 1; }
}

} // namespace shapes

extern "C" {
int exported(void) { return 0; }
}

extern "C" int single(void) { return 0; }

namespace a::b {
void nested() {}
}

int main(int argc, char *argv[]) try {
	return 0;
} catch (...) {
	return 1;
}
