Shape.prototype.rotate = function (by) {
  this.angle = by;
};
Shape.prototype = {
  grow(by) {},
  shrink: (by) => by,
};
module.exports = { open() {}, close: async () => {} }
module.exports.later = () => { }
export default { name: 'x', data() { return {} }, methods: { save() {} } }
let a = b / c, d = /[/"]/.test(e)
const first = 1
const second = (x) => x
label: for (const i of list) { function inner() {} }
window.start = async function () {}
