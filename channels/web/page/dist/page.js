var $,In,ds,be,qt,lt,Fn,st,Un,zt,Ht,us,Fe=Symbol.for("pv"),ct={},dt=[],ms=/^m(i|n|o|s|text|space)$/,jt=Array.isArray,Wn=dt.slice,xe=Object.assign;function Se(e){
e&&e.parentNode&&e.remove()}function it(e,t,o,r,s){var i={type:e,props:t,key:o,ref:r,__k:null,__:null,__b:0,__e:null,__c:null,constructor:Fe,__v:s||++In,__i:-1,__u:0};return!s&&$.vnode&&$.
vnode(i),i}function h(e){return e.children}function te(e,t){this.props=e,this.context=t,this.__g=0}function ve(e,t){if(t==null)return e.__&&ve(e.__,e.__i+1);for(var o;t<e.
__k.length;t++)if((o=e.__k[t])&&o.__e)return o.__e;return typeof e.type!="function"||e.props.__P?null:ve(e)}function ps(e){var t,o=e.__v,r=o.__e,s=[],i=[],a=e.__P;
a&&((t=xe({constructor:Fe},o)).__v=o.__v+1,$.vnode&&$.vnode(t),Vt(a,t,o,e.__n,a.namespaceURI,32&o.__u?[r]:null,s,r||ve(o),32&o.__u,i),t.__v=o.__v,t.__.__k[t.__i]=
t,Kn(s,t,i),o.__=o.__e=null,t.__e!=r&&qn(t))}function qn(e){if((e=e.__)&&e.__c&&!e.props.__P)return e.__e=null,e.__k.some(function(t){return t&&(e.__e=t.__e)}),
qn(e)}function Nn(e){(8&e.__g||(e.__g|=8,be.push(e),lt++))&&qt==$.debounceRendering||((qt=$.debounceRendering)||queueMicrotask)(Hn)}function Hn(){try{for(var e,
t=1;be.length;)be.length>t&&be.sort(Fn),e=be.shift(),t=be.length,8&e.__g&&ps(e)}finally{(lt=be.length)&&(qt||queueMicrotask)(Hn)}}function zn(e,t,o,r,s,i,a,l,c,d,u){
var v,g,m,p,k,_,C=r.__k||dt,x=t.length;for(c=fs(o,t,C,c,x),v=0;v<x;v++)(m=o.__k[v])!=null&&(g=~m.__i&&C[m.__i]||ct,m.__i=v,_=Vt(e,m,g,s,i,a,l,c,d,u),p=m.__e,(g.
ref!=m.ref||8&g.__u)&&(g.ref&&Kt(g.ref,null,m,g),m.ref&&u.push(m.ref,m.__c||p,m)),k=k||p,4&m.__u?(c=jn(m,c,e,!g.__v),g.__e&&(g.__e=null)):typeof m.type=="functi\
on"&&_!==void 0?c=_:p&&(c=p.nextSibling),m.__u&=-21);return o.__e=k,c}function fs(e,t,o,r,s){var i,a,l,c,d,u,v,g,m,p=o.length,k=p,_=0,C=0,x=e.__k=Array(s);for(i=
0;i<s;i++)(a=t[i])!=null&&typeof a!="boolean"&&typeof a!="function"?(typeof a!="object"||a.constructor===String?a=x[i]=it(null,a):jt(a)?a=x[i]=it(h,{children:a}):
a.constructor===Fe&&a.__b?a=x[i]=it(a.type,a.props,a.key,a.ref,a.__v):x[i]=a,c=i+_,a.__=e,a.__b=e.__b+1,l=null,~(d=a.__i=gs(a,o,c,k))&&(k--,(l=o[d])&&(l.__u|=2)),
l&&l.__v?(a.__u|=16,d==c-1?_--:d==c+1?_++:d!=c&&(d>c?_--:_++,C=1)):(~d||(s>p?_--:s<p&&_++),typeof a.type!="function"&&(a.__u|=4))):x[i]=null;if(C){for(u=[],v=[],
i=0;i<s;i++)if((a=x[i])&&16&a.__u){for(_=0,g=u.length;_<g;)u[m=_+g>>1]<a.__i?_=m+1:g=m;u[_]=a.__i,v[i]=_+1}for(_=u.length;i--;)v[i]&&(v[i]==_?_--:x[i].__u|=4)}if(k)
for(i=0;i<p;i++)!(l=o[i])||2&l.__u||(l.__e==r&&(r=ve(l)),Yt(l,l));return r}function jn(e,t,o,r){var s,i,a,l;if(typeof e.type=="function"){if(e.props.__P)return t;
if(s=e.__k)for(i=0;i<s.length;i++)s[i]&&(s[i].__=e,t=jn(s[i],t,o,!1));return t}for(t&&!t.parentNode&&(t=ve(e))&&!t.parentNode&&(t=null),a=e.__e,l=t;l&&l.nodeType==
8;)l=l.nextSibling;for(a!=l&&(!r&&o.moveBefore&&a.parentNode?o.moveBefore(a,t):o.insertBefore(a,t||null)),t=a;(t=t&&t.nextSibling)&&t.nodeType==8&&!t.data.startsWith(
"$s"););return t}function gs(e,t,o,r){var s,i=e.key,a=e.type,l=t[o],c=l&&!(2&l.__u);if(l===null&&i==null||c&&i==l.key&&a==l.type)return o;if(r>(c?1:0)){for(s=o-1;s>=0;s--)if((l=
t[s])&&!(2&l.__u)&&i==l.key&&a==l.type)return s;for(s=o+1;s<t.length;s++)if((l=t[s])&&!(2&l.__u)&&i==l.key&&a==l.type)return s}return-1}function Rn(e,t,o){o==null&&
(o=""),t[0]=="-"?e.setProperty(t,o):e[t]=o}function rt(e,t,o,r,s){var i,a;if(t=="style")if(typeof o=="string")e.style.cssText=o;else{if(typeof r=="string"&&(e.style.
cssText=r=""),r)for(t in r)o&&t in o||Rn(e.style,t);if(o)for(t in o)r&&o[t]==r[t]||Rn(e.style,t,o[t])}else if(t[0]=="o"&&t[1]=="n")typeof o!="function"&&(o=null),
typeof r!="function"&&(r=null),(e.__e||(e.__e={}))[t]=o,o&&r||(a=Ht[t]||(Ht[t]=hs(t)),(e.__a||(e.__a={}))[t]=zt,i=t!=(t=t.replace(Un,"$1")),(t=t.slice(2))[0]<"a"&&
(t=t.toLowerCase()),o?e.addEventListener(t,a,i):e.removeEventListener(t,a,i));else{if(s=="http://www.w3.org/2000/svg")t=t.replace(/xlink(H|:h)/,"h").replace(/sName$/,
"s");else if(t!="width"&&t!="height"&&t!="href"&&t!="list"&&t!="form"&&t!="tabIndex"&&t!="download"&&t!="rowSpan"&&t!="colSpan"&&t!="role"&&t!="popover"&&t in e)
try{return void(e[t]=o??"")}catch{}if(typeof o=="function")return;o==null||o===!1&&t[4]!="-"?e.removeAttribute(t):e.setAttribute(t,t=="popover"&&o==1?"":o)}}function hs(e){
return function(t){var o=this.__e;if(o){if(o=o[e],t[st]==null)t[st]=zt++;else if(t[st]<this.__a[e])return;return o($.event?$.event(t):t)}}}function Vt(e,t,o,r,s,i,a,l,c,d){
var u,v,g,m,p,k,_,C,x,F,R,Ce,Dn,ot,ke,$n,he,_e,me=t.type;if(t.constructor!==Fe)return null;128&o.__u&&(c=32&o.__u,u=o.__c.__z)&&(t.__u|=c,v=i=[],u.nodeType==8?l=
at(u,i):i.push(u),l=i[0]||l),(u=$.__b)&&u(t);e:if(typeof me=="function"){g=a.length;try{if(C=t.props,x=(u=me.prototype)&&u.render,F=(u=me.contextType)&&r[u.__c],
R=u?F?F.props.value:u.__:r,(m=o.__c)?(t.__c=m,2&m.__g&&(m.__g|=1)):(x?t.__c=m=new me(C,R):(t.__c=m=new te(C,R),m.constructor=me,m.render=vs),F&&F.sub(m),m.state||
(m.state={}),m.__n=r,m.__g|=8,m.__h=[],m.__k=[]),x&&(m.__s||(m.__s=m.state),me.getDerivedStateFromProps&&(m.__s==m.state&&(m.__s=xe({},m.__s)),xe(m.__s,me.getDerivedStateFromProps(
C,m.__s)))),p=m.props,k=m.state,m.__v=t,o.__c){if(C!==p&&x&&!me.getDerivedStateFromProps&&m.componentWillReceiveProps&&m.componentWillReceiveProps(C,R),t.__v==o.
__v&&!(8&m.__g)||!(4&m.__g)&&m.shouldComponentUpdate&&m.shouldComponentUpdate(C,m.__s,R)===!1){t.__v!=o.__v&&(m.props=C,m.state=m.__s,m.__g&=-9),t.__e=o.__e,t.__k=
o.__k,t.__k.some(function(ie){ie&&(ie.__=t)}),dt.push.apply(m.__h,m.__k),m.__k=[],m.__h.length&&a.push(m),l=ve(o);break e}m.componentWillUpdate&&m.componentWillUpdate(
C,m.__s,R),x&&m.componentDidUpdate&&m.__h.push(function(){m.componentDidUpdate(p,k,_)})}else x&&!me.getDerivedStateFromProps&&m.componentWillMount&&m.componentWillMount(),
x&&m.componentDidMount&&m.__h.push(m.componentDidMount);m.context=R,m.props=C,m.__P=e,m.__g&=-5,Ce=$.__r,Dn=x?25:0;do m.__g&=-9,Ce&&Ce(t),u=m.render(m.props,m.state=
m.__s,m.context);while(8&m.__g&&++Dn<25);x&&(dt.push.apply(m.__h,m.__k),m.__k=[]),m.state=m.__s,m.getChildContext&&(r=xe({},r,m.getChildContext())),x&&o.__c&&m.
getSnapshotBeforeUpdate&&(_=m.getSnapshotBeforeUpdate(p,k)),ot=u&&u.type===h&&u.key==null?u.props.children:u,C.__P&&(u=l,s=(e=C.__P).namespaceURI,c=i=null,o.props&&
o.props.__P!=e&&(o.__k.some(function(ie){ie&&Yt(ie,ie)}),o.__k=null),l=o.__k?ve(o,0):null),l=zn(e,jt(ot)?ot:[ot],t,o,r,s,i,a,l,c,d),C.__P&&(t.__e=null,l=u),t.__u&=
-161,v&&v.some(Se),m.__h.length&&a.push(m),1&m.__g&&(m.__g&=-4)}catch(ie){if(a.length=g,t.__v=null,c||i)if(ie&&ie.then){if(t.__u|=128|c,i){for(~(he=i.indexOf(l||
void 0))||(he=i.length);(_e=i[he-1])&&_e.nodeType==8;)he--;for(;he<i.length;he++)if(_e=i[he])if(i[he]=null,ke){if(_e==$n)break}else{if(_e.nodeType!=8)break;_e.data.
startsWith("$s")&&($n=at(ke=_e))}}if(!ke){for(;l&&l.nodeType==8&&l.nextSibling;)l=l.nextSibling;ke=l}(u=at(ke=t.__c.__z||(t.__c.__z=ke)))?(t.__e=ke,l=u):t.__e=l,
l=l&&l.nextSibling}else i&&i.some(Se);else t.__e=o.__e;t.__k||(t.__k=o.__k||[]),ie&&ie.then||Vn(t),$.__e(ie,t,o)}}else l=t.__e=bs(o.__e,t,o,r,s,i,a,c,d,e);return(u=
$.diffed)&&u(t),l}function at(e,t){if(e&&e.nodeType==8&&e.data.startsWith("$s"))for(var o=1;e=e.nextSibling;){if(e.nodeType==8){if(e.data.startsWith("$s"))o++;else if(e.
data.startsWith("/$s")&&!--o)return e}t&&t.push(e)}}function Vn(e){e&&(e.__c&&(e.__c.__g|=4),e.__k&&e.__k.some(Vn))}function Kn(e,t,o){for(var r=0;r<o.length;)Kt(
o[r++],o[r++],o[r++]);$.__c&&$.__c(t,e),e.some(function(s){try{e=s.__h,s.__h=[],e.some(function(i){i.call(s)})}catch(i){$.__e(i,s.__v)}})}function bs(e,t,o,r,s,i,a,l,c,d){
var u,v,g,m,p,k,_,C,x=o.props||ct,F=t.props,R=t.type;if(R=="svg"?s="http://www.w3.org/2000/svg":R=="math"?s="http://www.w3.org/1998/Math/MathML":s||(s="http://w\
ww.w3.org/1999/xhtml"),i){for(u=0;u<i.length;u++)if((p=i[u])&&(R?p.localName==R:p.nodeType==3)){e=p,i[u]=null;break}}if(!e){if(C=d.ownerDocument||document,!R)return C.
createTextNode(F);e=C.createElementNS(s,R,F.is?F:d),l&&($.__m&&$.__m(t,i),l=!1),i=null}if(R){if(d=R=="template"&&e.content||e,i=R=="textarea"&&F.defaultValue!=null?
null:i&&Wn.call(d.childNodes),!l&&i)for(x={},u=0;u<e.attributes.length;u++)x[(p=e.attributes[u]).name]=p.value;for(u in x)p=x[u],u=="dangerouslySetInnerHTML"?g=
p:u=="children"||u in F||u=="value"&&"defaultValue"in F||u=="checked"&&"defaultChecked"in F||rt(e,u,null,p,s);for(u in F)p=F[u],u=="children"?m=p:u=="dangerousl\
ySetInnerHTML"?v=p:u=="value"?k=p:u=="checked"?_=p:l&&typeof p!="function"||x[u]===p||rt(e,u,p,x[u],s);v?(l||g&&(v.__html==g.__html||v.__html==e.innerHTML)||(e.
innerHTML=v.__html),t.__k=[]):(g&&(e.textContent=""),(R=="foreignObject"||s=="http://www.w3.org/1998/Math/MathML"&&ms.test(R))&&(s="http://www.w3.org/1999/xhtml"),
zn(d,jt(m)?m:[m],t,o,r,s,i,a,i?i[0]:o.__k&&ve(o,0),l,c),i&&i.some(Se)),l&&R!="textarea"||(u="value",R=="progress"&&k==null?e.removeAttribute(u):k==null||k===e[u]&&
(R!="progress"||k)||rt(e,u,k,x[u],s),u="checked",_!=null&&_!=e[u]&&rt(e,u,_,x[u],s))}else x===F||l&&e.data==F||(e.data=F);return e}function Kt(e,t,o,r){try{typeof e==
"function"?t?t.__x=e(t)||1:r&&(r=r.__c||r.__e)&&(t=r.__x)&&(r.__x=null,typeof t=="function"?t():e(null)):e.current=t}catch(s){$.__e(s,o)}}function Yt(e,t,o){var r,
s,i,a;if($.unmount&&$.unmount(e),!(r=e.ref)||r.current&&r.current!=e.__e||Kt(r,null,t,e),r=e.__c){if(r.componentWillUnmount)try{r.componentWillUnmount()}catch(l){
$.__e(l,t)}r.__P=r.__n=null}if(r=e.__k)for(a=0;a<r.length;a++)r[a]&&Yt(r[a],t,typeof e.type!="function"||o&&!e.props.__P);!o&&(r=e.__c)&&(r=r.__z)&&(s=at(r,i=[]))&&
(r==e.__e&&i.some(Se),Se(s),Se(r)),o||Se(e.__e),e.__e=e.__c=e.__=null}function vs(e,t,o){return this.constructor(e,o)}function Yn(e,t){var o,r,s,i;$.__&&$.__(e,
t),t.nodeType==9&&(t=t.documentElement),r=(o=e&&32&e.__u)?null:t.__k,t.__k=it(h,{children:[e]}),s=[],i=[],Vt(t,t.__k,r||ct,ct,t.namespaceURI,r?null:t.firstChild?
Wn.call(t.childNodes):null,s,r?r.__e:t.firstChild,o,i),Kn(s,t.__k,i),t.__k.props.children=null}$={__e:function(e,t,o,r){for(var s,i,a;t=t.__;)if((s=t.__c)&&!(1&s.__g)){s.__g|=4;try{if((a=(i=s.constructor)&&i.getDerivedStateFromError)&&s.setState(i.getDerivedStateFromError(
e)),s.componentDidCatch&&(s.componentDidCatch(e,r||{}),a=1),a&&8&s.__g)return void(s.__g|=2)}catch(l){e=l}}throw lt=0,e}},In=0,ds=function(e){return e!=null&&e.
constructor===Fe},te.prototype.setState=function(e,t){var o=this.__s;o&&o!=this.state||(o=this.__s=xe({},this.state)),typeof e=="function"&&(e=e(xe({},o),this.props)),
e&&(xe(o,e),this.__v&&(t&&this.__k.push(t),Nn(this)))},te.prototype.forceUpdate=function(e){this.__v&&(this.__g|=4,e&&this.__h.push(e),Nn(this))},te.prototype.render=
h,be=[],lt=0,Fn=function(e,t){return e.__v.__b-t.__v.__b},st=Symbol(),Un=/(PointerCapture)$|Capture$/i,zt=0,Ht={},us=0;var Ae,H,Gt,Gn,Zt=Object.is,ut=0,io=[],Qt=[],U=$,Zn=U.__b,Qn=U.__r,eo=U.diffed,to=U.__c,no=U.unmount,oo=U.__;function mt(e,t){U.__h&&U.__h(H,e,ut||t),ut=0;var o=H.
__H||(H.__H={__:[],__h:[]});return e>=o.__.length&&o.__.push({}),o.__[e]}function f(e){return ut=1,ws(ao,e)}function ws(e,t,o){var r=mt(Ae++,2);if(r.t=e,!r.__c&&
(r.__=[o?o(t):ao(void 0,t),function(i){var a=(r.__N||r.__)[0],l=r.t(a,i);Zt(a,l)||(r.__N=[l,r.__[1]],r.__c.setState({}))}],r.__c=H,!H.__f)){H.__f=!0;var s=H.shouldComponentUpdate;
H.shouldComponentUpdate=function(i,a,l){var c=this.__H;if(!c)return!0;var d=!1,u=this.props!=i;if(c.__.some(function(g){g.__N&&(d=!0,Zt(g.__[0],g.__N[0])||(u=!0))}),
s){var v=s.call(this,i,a,l);return d?v||u:v}return!d||u}}return r.__}function E(e,t){var o=mt(Ae++,3);!U.__s&&tn(o.__H,t)&&(o.__P=!0,o.__=e,o.u=t,H.__H.__h.push(
o))}function pe(e,t){var o=mt(Ae++,4);!U.__s&&tn(o.__H,t)&&(o.__P=!1,o.__=e,o.u=t,H.__h.push(o))}function A(e){return ut=5,ys(function(){return{current:e}},[])}function ys(e,t){var o=mt(Ae++,7);return tn(o.__H,t)&&(o.__=e(),o.__H=t),o.__}function ks(){var e;do{for(;e=Qt.shift();)try{Ue(e)}catch(o){U.__e(o,{__:(e=e.__P)&&e.__v})}for(;e=io.shift();){var t=e.__H;if(e.__P&&t)try{t.__h.some(Ue),t.__h.
some(en),t.__h=[]}catch(o){t.__h=[],U.__e(o,e.__v)}}}while(Qt.length)}U.__b=function(e){H=null,Zn&&Zn(e)},U.__=function(e,t){e&&t.__k&&t.__k.__m&&(e.__m=t.__k.__m),
oo&&oo(e,t)},U.__r=function(e){Qn&&Qn(e),Ae=0;var t=(H=e.__c).__H;t&&(Gt==H?H.__h=[]:(t.__h.some(Ue),t.__h.some(en),Ae=0),t.__h=[],t.__.some(function(o){o.__N&&
(o.__=o.__N),o.u=o.__N=void 0})),Gt=H},U.diffed=function(e){eo&&eo(e);var t=e.__c;t&&t.__H&&(t.__H.__h.length&&so(io.push(t)),t.__H.__.some(function(o){o.u&&(o.
__H=o.u)})),Gt=H=null},U.__c=function(e,t){t.some(function(o){try{o.__h.some(Ue),o.__h=o.__h.filter(function(r){return!r.__||en(r)})}catch(r){o.__h=[function(){
throw r}]}}),to&&to(e,t)},U.unmount=function(e){no&&no(e);var t,o,r=e.__c;r&&r.__H&&(r.__H.__.some(function(s){try{if(s.__P&&s.__c){if(o===void 0){for(o=e.__;o&&
(!o.__c||!o.__c.__P);)o=o.__;o=o&&o.__c}s.__P=o,so(Qt.push(s))}else Ue(s)}catch(i){t=i}}),r.__H=void 0,t&&U.__e(t,r.__v))};var ro=typeof requestAnimationFrame==
"function";function _s(e){var t,o=function(){clearTimeout(r),ro&&cancelAnimationFrame(t),setTimeout(e)},r=setTimeout(o,35);ro&&(t=requestAnimationFrame(o))}function so(e){
e!=1&&Gn==U.requestAnimationFrame||((Gn=U.requestAnimationFrame)||_s)(ks)}function Ue(e){var t=H,o=e.__c;typeof o=="function"&&(e.__c=void 0,o()),H=t}function en(e){
var t=H;e.__c=e.__(),H=t}function tn(e,t){return!e||e.length!=t.length||t.some(function(o,r){return!Zt(o,e[r])})}function ao(e,t){return typeof t=="function"?t(
e):t}var Q=class extends Error{constructor(o,r,s,i=0){super(s);this.status=o;this.code=r;this.retryAfter=i}status;code;retryAfter},lo=()=>{};function co(e){lo=e}function ne(e,t={}){
let o=new URLSearchParams;for(let[s,i]of Object.entries(t))i!==void 0&&i!==""&&o.set(s,String(i));let r="/v1/"+e.map(encodeURIComponent).join("/");return o.size>
0?r+"?"+o.toString():r}function y(e,t={},o){return We("GET",ne(e,t),void 0,{},o)}function W(e,t={},o){return We("POST",ne(e),t,o?{"Idempotency-Key":o}:{})}function pt(e,t){
return We("PATCH",ne(e),t)}function Y(e,t){return We("DELETE",ne(e),void 0,t?{"If-Match":`"${t}"`}:{})}function uo(e,t,o){return We("PUT",ne(e),t,{"If-Match":`"${o}\
"`})}async function We(e,t,o,r={},s){let i={...r};e!=="GET"&&(i["Parley-Page"]="1"),o!==void 0&&(i["Content-Type"]="application/json");let a={method:e,headers:i,
credentials:"same-origin",redirect:"error"};o!==void 0&&(a.body=JSON.stringify(o)),s&&(a.signal=s);let l=await qe(t,a);if(!l.ok)throw await Te(l);let c=await l.
text();return c?JSON.parse(c):void 0}async function qe(e,t){try{return await fetch(e,{cache:"no-store",...t})}catch(o){throw t.signal?.aborted?o:new Q(0,"unreac\
hable","Can't reach the server. Check that parley serve is running.")}}async function Te(e){let t="http_"+e.status,o=`The server responded with status ${e.status}\
.`;try{let r=await e.json();t=r.error?.code||t,o=r.error?.message||o}catch{}return e.status===401&&lo(),new Q(e.status,t,o,Number(e.headers.get("Retry-After"))||
0)}function Je(e){let t=e instanceof Error?e.message:String(e);return t.charAt(0).toUpperCase()+t.slice(1)}function mo(e){let[t="",...o]=e.replace(/^#?\/?/,"").split("/");try{return{view:decodeURIComponent(t),rest:o.map(decodeURIComponent)}}catch{return{view:"",rest:[]}}}
function L(e,...t){return"#/"+[e,...t].map(encodeURIComponent).join("/")}function Me(e,...t){location.hash=L(e,...t)}function po(){let[e,t]=f(()=>mo(location.hash));
return pe(()=>{let o=()=>t(mo(location.hash));return addEventListener("hashchange",o),()=>removeEventListener("hashchange",o)},[]),e}var Ss=Symbol.for("pv"),xs=0;function n(e,t,o,r,s,i){t||(t={});var a,l,c=t;if("ref"in c&&typeof e!="function")for(l in c={},t)l=="ref"?a=t[l]:c[l]=t[l];var d={type:e,props:c,key:o,ref:a,__k:null,
__:null,__b:0,__e:null,__c:null,constructor:Ss,__v:--xs,__i:-1,__u:0};return(s||i)&&(d.__source=s,d.__self=i),$.vnode&&$.vnode(d),d}function fo(){let[e,t]=f(!1),[o,r]=f(0),s=()=>t(!1);return E(()=>{if(!e)return;let i=l=>{l.target instanceof Element&&!l.target.closest("#views, .top")&&s()},a=l=>{
l.key==="Escape"&&(s(),document.querySelector(".menu-button")?.focus())};return addEventListener("pointerdown",i),addEventListener("focusin",i),addEventListener(
"keydown",a),()=>{removeEventListener("pointerdown",i),removeEventListener("focusin",i),removeEventListener("keydown",a)}},[e]),{open:e,waiting:o,toggle:()=>t(!e),
close:s,tell:r}}function go({menu:e}){return n("button",{type:"button",class:"button quiet menu-button","aria-expanded":e.open,"aria-controls":"views",onClick:e.
toggle,children:[n("svg",{class:"icon",viewBox:"0 0 24 24","aria-hidden":"true",focusable:"false",children:n("path",{d:"M4 6h16M4 12h16M4 18h16"})}),"Menu",e.waiting>
0&&!e.open&&n("span",{class:"badge warn",children:[e.waiting,n("span",{class:"away",children:" open requests"})]})]})}function Ts(e){let t=new Map;for(let o of e)
t.set(o.group,[...t.get(o.group)??[],o]);return[...t]}function ho({all:e,view:t,menu:o}){let r=A(null);E(()=>{r.current?.querySelector("[aria-current]")?.scrollIntoView(
{block:"nearest"})},[t]);let s=()=>{o.open&&(o.close(),document.getElementById("content")?.focus())};return n("nav",{ref:r,id:"views",class:"views"+(o.open?" op\
en":""),"aria-label":"Views",children:Ts(e).map(([i,a])=>{let l="views-"+i.toLowerCase();return n("div",{class:"views-group",children:[n("span",{id:l,class:"vie\
ws-title",children:i}),n("ul",{"aria-labelledby":l,children:a.map(c=>n("li",{children:n("a",{href:L(c.name),"aria-current":c===t?"page":void 0,onClick:s,children:[
c.title,c.beside&&n(c.beside,{tell:o.tell})]})},c.name))})]},i)})})}function w({children:e,onPress:t,look:o,disabled:r,label:s,onError:i}){let[a,l]=f(!1),c=async()=>{try{let d=t();if(!(d instanceof Promise))return;l(!0),await d}catch(d){
if(!i)throw d;i(d)}finally{l(!1)}};return n("button",{type:"button",class:"button "+(o??""),disabled:r||a,"aria-label":s,"aria-busy":a,onClick:()=>{c()},children:e})}
function M({error:e,again:t}){return e?n("div",{class:"note error",role:"alert",children:[n("span",{children:Je(e)}),t&&n(w,{look:"quiet",onPress:t,children:"Tr\
y again"})]}):null}function re({children:e}){return n("p",{class:"empty",children:e})}function se(){return n("p",{class:"empty",role:"status",children:"Loading…"})}
function z({label:e,columns:t,rows:o,id:r,empty:s}){return o.length===0?n(re,{children:s}):n("div",{class:"table",tabIndex:0,role:"region","aria-label":e,children:n(
"table",{children:[n("caption",{class:"away",children:e}),n("thead",{children:n("tr",{children:t.map(i=>n("th",{scope:"col",class:i.number?"number":"",children:i.
title},i.title))})}),n("tbody",{children:o.map(i=>n("tr",{children:t.map(a=>n("td",{class:a.number?"number":"","data-title":a.title,children:a.cell(i)},a.title))},
r(i)))})]})})}function V({of:e}){return e?n("a",{href:L("why",e),"aria-label":"Why? "+e,children:"Why?"}):null}function bo({label:e,children:t}){let o=A(null),r=()=>{
o.current&&(o.current.open=!1)};return E(()=>{let s=i=>{i.target instanceof Node&&!o.current?.contains(i.target)&&r()};return addEventListener("pointerdown",s),
()=>removeEventListener("pointerdown",s)},[]),n("details",{ref:o,class:"menu",onKeyDown:s=>{s.key!=="Escape"||!o.current?.open||(r(),o.current.querySelector("su\
mmary")?.focus())},children:[n("summary",{class:"button quiet","aria-label":e,title:e,children:"⋯"}),n("div",{class:"menu-items",onClick:r,children:t})]})}function fe({
title:e,children:t,confirm:o,danger:r,onConfirm:s,onClose:i}){let a=A(null),l=A(!1),[c,d]=f(null);return pe(()=>{let v=a.current;return v?.showModal(),()=>{l.current=
!0,v?.close()}},[]),n("dialog",{ref:a,class:"dialog","aria-labelledby":"dialog-title",onClose:()=>l.current||i(),children:[n("h2",{id:"dialog-title",children:e}),
n("div",{children:t}),n(M,{error:c}),n("div",{class:"actions",children:[n(w,{onPress:i,children:"Cancel"}),n(w,{look:r?"danger":"main",onPress:async()=>{await s(),
i()},onError:d,children:o})]})]})}function ce(){let e=A(null);return pe(()=>{let t=document.activeElement;return e.current?.scrollIntoView({block:"start"}),e.current?.
focus({preventScroll:!0}),()=>{t instanceof HTMLElement&&e.current?.contains(document.activeElement)&&t.focus()}},[]),e}function B(e,t){let[o,r]=f({}),[s,i]=f(0);
return E(()=>{let a=new AbortController;return e(a.signal).then(l=>a.signal.aborted||r({value:l}),l=>a.signal.aborted||r(c=>({...c,error:l}))),()=>a.abort()},[t,
s]),{...o,again:()=>i(a=>a+1)}}function vo(){let e=/^#code=([^&]+)$/.exec(location.hash);return e?.[1]?(history.replaceState(null,"",location.pathname),decodeURIComponent(e[1])):""}async function wo(e){
if(e)return yo({code:e});try{return await y(["me"])}catch(t){if(t instanceof Q&&(t.status===401||t.status===404))return null;throw t}}function yo(e){return W(["\
sign-ins"],e)}function Es(e){let t=/(?:#code=|^)([A-Z2-7]{26})$/.exec(e)?.[1];return t?{code:t}:{token:e}}function ko({error:e,onDone:t}){let[o,r]=f(""),[s,i]=f(
e),a=async()=>{let l=o.trim();l&&(i(null),t(await yo(Es(l))))};return n("main",{class:"signin",children:[n("h1",{children:"Parley"}),n("p",{children:["Run ",n("\
code",{children:"parley ui"})," on the server. It opens this page and signs you in."]}),n(M,{error:s}),n("form",{onSubmit:l=>{l.preventDefault(),a().catch(i)},children:[
n("label",{for:"given",children:"Or paste the link that it prints, or a token"}),n("input",{id:"given",type:"password",autocomplete:"off",value:o,onInput:l=>r(l.
currentTarget.value)}),n(w,{look:"main",disabled:!o.trim(),onPress:a,onError:i,children:"Sign in"})]})]})}var _o="en-US";function P(e){return e.toLocaleString(_o)}function X(e,t){return P(e)+" "+He(e,t)}function He(e,t){return e===1?t:t+"s"}function ee(e){return e===
0?"$0":Math.abs(e)<1e4?"$"+(e/1e6).toFixed(6).replace(/0+$/,""):on(e,2)}function ze(e){return Math.abs(e)<1e4||e%1e4===0?ee(e):on(e,4)}function So(e){let t=2;for(let o of e)
o>0&&o<100?t=6:o>0&&o<1e4&&(t=Math.max(t,4));return o=>on(o,t)}function on(e,t){return"$"+(e/1e6).toLocaleString(_o,{minimumFractionDigits:t,maximumFractionDigits:t})}
function j(e){return e<1024?X(e,"byte"):e<1<<20?(e/1024).toFixed(1)+" KB":(e/(1<<20)).toFixed(1)+" MB"}function G(e){if(e<1e3)return Math.max(0,Math.round(e))+"\
 ms";let t=Math.round(e/1e3);return t<60?t+" s":t<3600?nn(t,60,"min",1,"s"):t<86400?nn(t,3600,"h",60,"min"):nn(t,86400,"d",3600,"h")}function nn(e,t,o,r,s){let i=Math.
floor(e%t/r);return Math.floor(e/t)+" "+o+(i>0?` ${i} ${s}`:"")}var Ps=366;function rn(e,t,o){let r=[];for(let s=e;s<=t&&r.length<Ps;s+=o)r.push(s);return r}function ge(e){
return new Date(e).toISOString().slice(0,10)}function ft(e,t){return rn(Date.parse(e),Date.parse(t),864e5).map(ge)}var xo=10,Cs=10<<20;function To(e){let t=new Date,o=i=>String(i).padStart(2,"0"),s=`${`${t.getFullYear()}-${o(t.getMonth()+1)}-${o(t.getDate())}`}-${o(t.getHours())}${o(
t.getMinutes())}-${crypto.randomUUID().slice(0,4)}`;return["main","web",e.name,s].map(encodeURIComponent).join(":")}function je(e,t,o){return{key:Eo(),session:e,
text:t,files:o,state:"sending",id:"",problem:""}}var Eo=()=>"page-"+crypto.randomUUID(),As=5;async function Po(e,t){e.state="sending",e.problem="",t();let o=e.files.
map(s=>({name:s.name,data:s.data})),r={to:"agent",session:e.session,text:e.text,...o.length>0&&{files:o}};for(let s=1;;s++)try{let i=await W(["messages"],e.operator?
{session:e.session,as:"operator",text:e.text}:Bs(r),e.key);e.id=i.id,e.state="sent",t();return}catch(i){let a=i instanceof Q?i:new Q(0,"broken",String(i));if(!(a.
status===0||a.status===429||a.status>=500)||s===As){e.state="refused",e.problem=a.message,t();return}await new Promise(c=>setTimeout(c,Math.min(Math.max(a.retryAfter*
1e3,400*2**s),8e3)))}}var Js=1500,Ms=12;async function Co(e,t,o,r){for(let s=0;s<Ms&&e.state==="sent";s++){if(await new Promise(i=>setTimeout(i,Math.min(Js*1.5**
s,3e4))),r.aborted||o())return;try{let{destinations:i}=await y(["messages",e.id],{},r),a=i.find(l=>l.state==="failed");if(!a)continue;Object.assign(e,{state:"re\
fused",problem:a.error?.message??"It couldn't be delivered.",id:"",key:Eo()}),t()}catch{}}}function Bs(e){let[t="",o]=e.session.split(":");return o&&t!=="main"?
{...e,to:"agent:"+decodeURIComponent(t)}:e}function ae(e){let[t="",o="",r="",s=""]=e.split(":").map(i=>{try{return decodeURIComponent(i)}catch{return i}});return{
agent:t,channel:o,chat:r,thread:s}}function we(e){let{channel:t,chat:o,thread:r}=ae(e);return t==="web"?r||"First session":[o,r].filter(Boolean).join(" / ")||e}
function Ao(e,t){if(!t.may.agent)return!1;let{channel:o,chat:r}=ae(e);return o==="web"&&r===t.name||o==="console"&&t.owner}function Jo(e,t){return t.may.admin&&
!["","web","console","agent","webhook","heartbeat"].includes(ae(e).channel)}var sn={get:e=>sessionStorage.getItem("draft "+e)??"",set:(e,t)=>{t.trim()?sessionStorage.
setItem("draft "+e,t):sessionStorage.removeItem("draft "+e)}},Ve={get:e=>{try{return JSON.parse(sessionStorage.getItem("outbox "+e)??"[]").map(o=>({...o,files:[],
state:"sending",id:"",problem:""}))}catch{return[]}},set:(e,t)=>{let o=t.filter(r=>r.state==="sending"&&r.files.length===0).map(({key:r,session:s,text:i,operator:a})=>({
key:r,session:s,text:i,...a&&{operator:a}}));o.length>0?sessionStorage.setItem("outbox "+e,JSON.stringify(o)):sessionStorage.removeItem("outbox "+e)}};async function Mo(e,t){
let o=[...t];for(let r of e){if(o.length===xo)throw new Error(`You can attach up to ${xo} files to a message.`);if(o.reduce((l,c)=>l+c.size,r.size)>Cs)throw new Error(
"The files are too large. You can attach up to 10 MB to a message.");if(r.size===0)throw new Error(`The file ${r.name} is empty.`);let i=await Ls(r),a={name:Os(
r.name,o.length),size:r.size,data:i};/^image\/(png|jpeg|gif|webp)$/.test(r.type)&&(a.preview=URL.createObjectURL(r)),o.push(a)}return o}function Os(e,t){return e.
replace(/[\p{C}/\\]/gu,"_").slice(-100)||`file-${t+1}`}function Ls(e){return new Promise((t,o)=>{let r=new FileReader;r.onload=()=>t(String(r.result).replace(/^[^,]*,/,
"")),r.onerror=()=>o(new Error(`Can't read the file ${e.name}.`)),r.readAsDataURL(e)})}function gt({session:e,running:t,onSay:o,onStop:r}){let[s,i]=Oo(e),[a,l]=f([]),[c,d]=f(null),[u,v]=f(!1),g=A(null),m=A(null);E(()=>{matchMedia("(pointer: fine)").
matches&&g.current?.focus()},[]);let p=_=>{d(null),Mo(_,a).then(l,d)},k=()=>{!s.trim()&&a.length===0||(o(s,a),i(""),l([]),d(null),g.current?.focus())};return n(
"form",{class:"composer"+(u?" over":""),"aria-label":"Write a message",onSubmit:_=>{_.preventDefault(),k()},onDragOver:_=>{_.preventDefault(),v(!0)},onDragLeave:()=>v(
!1),onDrop:_=>{_.preventDefault(),v(!1),p(_.dataTransfer?.files??[])},children:[n(M,{error:c}),n(Ds,{files:a,onRemove:_=>l(a.filter(C=>C!==_))}),n("div",{class:"\
composer-row",children:[n("input",{ref:m,type:"file",multiple:!0,hidden:!0,onChange:_=>{p([..._.currentTarget.files??[]]),_.currentTarget.value=""}}),n(w,{look:"\
quiet",label:"Add files",onPress:()=>m.current?.click(),children:n(Xs,{})}),n(Lo,{box:g,label:"Message",hint:"Message the agent",text:s,write:i,send:k,paste:p}),
t&&n(w,{look:"danger",onPress:r,children:"Stop"}),n(w,{look:"main",disabled:!s.trim()&&a.length===0,onPress:k,children:"Send"})]})]})}function Bo({session:e,channel:t,
onSay:o}){let[r,s]=Oo(e),i=()=>{r.trim()&&(o(r),s(""))};return n("form",{class:"composer operator","aria-label":"Answer as the operator",onSubmit:a=>{a.preventDefault(),
i()},children:[n("p",{id:"operator-note",class:"operator-note",children:[n("strong",{children:"Answer as the operator."})," People on ",t," see your message, ma\
rked as yours. The agent knows of it, and doesn't answer it."]}),n("div",{class:"composer-row",children:[n(Lo,{label:"Answer as the operator",hint:"Answer as th\
e operator",about:"operator-note",text:r,write:s,send:i}),n(w,{look:"main",disabled:!r.trim(),onPress:i,children:"Send as operator"})]})]})}function Oo(e){let[t,
o]=f(()=>sn.get(e));return[t,s=>{o(s),sn.set(e,s)}]}function Lo({label:e,hint:t,about:o,text:r,write:s,send:i,paste:a,box:l}){return n("textarea",{ref:l,rows:Math.
min(r.split(`
`).length,12),"aria-label":e,"aria-describedby":o,placeholder:t,value:r,onInput:c=>s(c.currentTarget.value),onKeyDown:c=>{c.key!=="Enter"||c.shiftKey||c.isComposing||
(c.preventDefault(),i())},onPaste:c=>{let d=[...c.clipboardData?.files??[]];!a||d.length===0||(c.preventDefault(),a(d))}})}function Xs(){return n("svg",{class:"\
icon",viewBox:"0 0 24 24","aria-hidden":"true",children:n("path",{d:"M20 11.5 12 19.5a5 5 0 0 1-7-7l8.5-8.5a3.4 3.4 0 0 1 4.8 4.8l-8.4 8.4a1.7 1.7 0 0 1-2.4-2.4\
l7.6-7.6"})})}function Ds({files:e,onRemove:t}){return e.length===0?null:n("ul",{class:"files","aria-label":"Files to send",children:e.map((o,r)=>n("li",{class:"\
file",children:[o.preview&&n("img",{src:o.preview,alt:""}),n("span",{children:o.name})," ",n("span",{class:"faint",children:j(o.size)}),n("button",{type:"button",
class:"button quiet","aria-label":"Remove "+o.name,onClick:()=>t(o),children:"×"})]},r))})}var $s=/(?![ \n\t])[\p{C}\p{Z}\p{Default_Ignorable_Code_Point}\p{Variation_Selector}\u2800\ufffc\u{16fe4}]/gu;function b(e){return e.replace($s,t=>{let o=t.codePointAt(
0)??0;return o>65535?"\\U"+o.toString(16).padStart(8,"0"):"\\u"+o.toString(16).padStart(4,"0")})}var an=6e4,ln=60*an,cn=24*ln;function Ns(e){let t=e.getTime()-Date.now(),o=Math.abs(t);return o<1e4?"just now":o>30*cn?e.toLocaleDateString():t<0?Xo(o)+" ago":"\
in "+Xo(o)}function Xo(e){if(e<an)return G(e);if(e<ln)return G(e-e%an);if(e<cn)return G(e-e%ln);let t=Math.round(e/cn);return t===1?"1 day":t+" days"}function Do(e){
let[,t]=f(0);E(()=>{let o=setInterval(()=>t(r=>r+1),e*1e3);return()=>clearInterval(o)},[e])}function dn({at:e,says:t}){let o=new Date(e);return Number.isNaN(o.getTime())?
n("span",{children:e}):n("time",{dateTime:e,title:o.toLocaleString(),children:t(o)})}function T({at:e}){return Do(10),n(dn,{at:e,says:Ns})}function de({at:e}){return Do(
1),n(dn,{at:e,says:t=>G(Math.max(1e3,Date.now()-t.getTime()))})}function ht({at:e}){return n(dn,{at:e,says:t=>t.toLocaleTimeString()})}function O({title:e,about:t,done:o,children:r}){let s=A(null),i=A(0);return E(()=>{!o?.said||o.turn===i.current||document.activeElement!==document.body||(i.current=
o.turn,s.current?.focus({preventScroll:!0}))}),n("div",{class:"page sheet",children:[n("h1",{ref:s,tabIndex:-1,children:e}),t&&n("p",{class:"about",children:t}),
o&&n(Rs,{outcome:o}),r]})}function Z(){let[e,t]=f({said:"",error:null,turn:0});return{...e,say:r=>{t(s=>({said:"",error:null,turn:s.turn})),setTimeout(()=>t(s=>({
said:r,error:null,turn:s.turn+1})),50)},fail:r=>t(s=>({said:"",error:r,turn:s.turn}))}}function Rs({outcome:e}){return n(h,{children:[n("p",{class:e.said?"note \
done":"away",role:"status",children:e.said}),n(M,{error:e.error})]})}function D({value:e,error:t,again:o}){return t?n(M,{error:t,again:o}):e===void 0?n(se,{}):null}
function K({read:e,rows:t,...o}){return n(h,{children:[n(D,{...e}),e.value!==void 0&&n(z,{...o,rows:t(e.value)})]})}function oe(e){let[t,o]=f(null);if(t===null)
return{ask:o,dialog:null};let{title:r,confirm:s,text:i,act:a}=e(t);return{ask:o,dialog:n(fe,{title:r,confirm:s,danger:!0,onConfirm:a,onClose:()=>o(null),children:i})}}
function bt({label:e,value:t,set:o,children:r}){return n("form",{class:"filters",onSubmit:s=>s.preventDefault(),children:[n("label",{class:"long",children:[e,n(
"input",{type:"search",value:t,spellcheck:!1,onInput:s=>o(s.currentTarget.value)})]}),r]})}function vt(e,...t){let o=t.join(`
`).toLowerCase();return e.toLowerCase().split(/\s+/).every(r=>o.includes(r))}function N({title:e,children:t,wide:o,box:r}){let s="block-"+e.toLowerCase().replace(
/[^a-z]+/g,"-");return n("section",{ref:r,class:"block"+(o?" wide":""),"aria-labelledby":s,tabIndex:r?-1:void 0,children:[n("h2",{id:s,children:e}),t]})}function Be({
title:e,children:t,close:o}){let r=ce();return n(N,{title:e,wide:!0,box:r,children:[t,n("div",{class:"after",children:n(w,{onPress:o,children:"Close"})})]})}function Oe({
after:e,next:t,go:o}){return!e&&!t?null:n("div",{class:"after",children:[e&&n(w,{onPress:()=>o(""),children:"First page"}),t&&n(w,{onPress:()=>o(t),children:"Ne\
xt page"})]})}function S({of:e}){return e?n("span",{class:"name",children:b(e)}):null}function q({of:e}){return e?n("a",{class:"name",href:L("chat",e),children:b(
e)}):null}function wt({text:e}){let t=b(e).split("`");return t.length%2===0?n(h,{children:t.join("`")}):n(h,{children:t.map((o,r)=>r%2===1?n("code",{children:o},
r):o)})}function Ke({of:e,label:t,above:o}){return n("div",{class:"preview",children:[o&&n("h3",{children:o}),n("pre",{tabIndex:0,role:"region","aria-label":t,children:n(
"span",{class:"preview-line",children:b(e)})})]})}function yt({of:e,label:t}){return n(Ke,{of:JSON.stringify(e,null,2),label:t})}function kt({spent:e,kept:t=0,look:o}){
return n("svg",{class:"bar "+o,viewBox:"0 0 100 1",preserveAspectRatio:"none","aria-hidden":"true",focusable:"false",children:[n("rect",{class:"all",width:"100",
height:"1"}),t>0&&n("rect",{class:"kept",width:Math.min(100,e+t),height:"1"}),n("rect",{class:"spent",width:Math.min(100,e),height:"1"})]})}function J({look:e,children:t}){
return n("span",{class:"badge "+(e??""),children:t})}var $o=["reset","turn_start","parked","turn_complete","turn_error","ask","ask_resolved","dead_letter","job","job_output","task","channel"],Is=2e4,No="parley-eve\
nts",un=class{followers=new Set;tabs=new BroadcastChannel(No);leave;constructor(){this.tabs.onmessage=t=>{let o=$o.find(r=>r===t.data?.kind);o&&this.hear({...t.
data,kind:o})}}follow(t){return this.followers.add(t),this.followers.size===1&&document.addEventListener("visibilitychange",this.look),this.look(),()=>{this.followers.
delete(t),!(this.followers.size>0)&&(document.removeEventListener("visibilitychange",this.look),this.look())}}look=()=>{let t=this.followers.size>0&&!document.hidden;
t&&!this.leave?(this.leave=new AbortController,this.lead(this.leave.signal)):t||(this.leave?.abort(),this.leave=void 0)};async lead(t){for(;!t.aborted;){try{await navigator.
locks.request(No,{signal:t},()=>this.stream(t))}catch(o){if(!t.aborted)throw o;return}t.aborted||await new Promise(o=>setTimeout(o,Is))}}stream(t){return new Promise(
o=>{let r=new EventSource(ne(["events"]));for(let s of $o)r.addEventListener(s,i=>this.tell(s,i.data));r.addEventListener("error",()=>{r.readyState===EventSource.
CLOSED&&(this.tell("reset","{}"),o())}),t.addEventListener("abort",()=>{r.close(),o()})})}tell(t,o){let{session:r,id:s}=JSON.parse(o),i={kind:t,...r&&{session:r},
...s&&{id:s}};this.tabs.postMessage(i),this.hear(i)}hear(t){for(let o of[...this.followers])o(t)}},Ro=new un;function Io(e){return Ro.follow(e)}function _t(e,t){
let o=A(t);o.current=t;let r=e.join(" ");E(()=>{if(!r)return;let s=new Set(["reset",...r.split(" ")]),i=0,a=Ro.follow(({kind:l})=>{!s.has(l)||i||(i=setTimeout(()=>{
i=0,o.current()},250))});return()=>{a(),clearTimeout(i)}},[r])}var Fs=5;function I(e,t,o,r=[],s=0){let[i,a]=f({key:t}),[l,c]=f(0),d=A(e);d.current=e;let u=()=>c(p=>p+1),v=A(0),g=A(0);return _t(r,()=>{v.current||(v.current=setTimeout(
()=>{v.current=0,g.current=Date.now(),u()},Math.max(0,g.current+s-Date.now())))}),E(()=>()=>clearTimeout(v.current),[]),E(()=>{let p=new AbortController,k=!1,_=0,
C=async()=>{if(!(k||document.hidden)){k=!0,clearTimeout(_);try{let R=await d.current(p.signal);p.signal.aborted||a({key:t,value:R})}catch(R){p.signal.aborted||(a(
Ce=>Ce.key===t?{...Ce,error:R}:{key:t,error:R}),_=setTimeout(()=>{C()},Math.min(o,Fs)*1e3))}finally{k=!1}}};C();let x=setInterval(()=>{C()},o*1e3),F=()=>{C()};return document.
addEventListener("visibilitychange",F),()=>{p.abort(),clearInterval(x),clearTimeout(_),document.removeEventListener("visibilitychange",F)}},[t,o,l]),{...i.key===
t?i:{key:t},again:u}}var Us=100,Ws=10<<20;function Fo({session:e,close:t}){let[{folder:o,after:r},s]=f({folder:"",after:""}),[i,a]=f(null),l=I(v=>y(["sessions",e,"files"],{folder:o,
after:r,limit:Us},v),o+`
`+r,20,["turn_complete"]),c=ce(),d=v=>{a(null),s({folder:v,after:""}),c.current?.focus()},u=l.value;return n("section",{ref:c,class:"files-panel","aria-label":"\
Files of this session",tabIndex:-1,children:[n("div",{class:"between",children:[n(qs,{folder:o,open:d}),n(w,{look:"quiet",onPress:t,label:"Close the files",children:"\
Close"})]}),n(D,{...l}),u?.files.length===0&&n("p",{class:"none",children:o||r?"No files here.":"This session has no files yet."}),n("ul",{class:"items",children:u?.
files.map(v=>n("li",{children:n(Hs,{session:e,file:v,open:d,look:a})},v.name))}),n(Oe,{after:r,next:u?.next,go:v=>s({folder:o,after:v})}),i&&n(zs,{session:e,file:i,
close:()=>a(null)},i.name)]})}function qs({folder:e,open:t}){let o=e?e.split("/"):[];return n("nav",{class:"trail","aria-label":"Folders",children:[n(w,{look:"q\
uiet",disabled:!e,onPress:()=>t(""),children:"All files"}),o.map((r,s)=>n("span",{children:["/ ",n(w,{look:"quiet",disabled:s===o.length-1,onPress:()=>t(o.slice(
0,s+1).join("/")),children:b(r)})]},s))]})}function Hs({session:e,file:t,open:o,look:r}){let s=b(t.name.slice(t.name.lastIndexOf("/")+1));if(t.folder)return n("\
span",{children:n(w,{look:"quiet",onPress:()=>o(t.name),label:`Open the folder ${s}`,children:[s,"/"]})});let i=/\.(png|jpe?g|gif|webp)$/i.test(t.name)&&t.bytes<=
Ws;return n("div",{class:"file-line",children:[n("span",{class:"name",children:[s," ",n("span",{class:"faint",children:[j(t.bytes),t.changed&&n(h,{children:[", \
changed ",n(T,{at:t.changed})]})]})]}),i&&n(w,{onPress:()=>r(t),label:`Show ${s}`,children:"Show"}),n("a",{class:"button",href:ne(["sessions",e,"files",t.name]),
download:"","aria-label":`Download ${s}`,children:"Download"})]})}function zs({session:e,file:t,close:o}){let r=ce(),s=B(i=>js(e,t.name,i),t.name);return E(()=>()=>{
s.value&&URL.revokeObjectURL(s.value)},[s.value]),n("figure",{ref:r,class:"picture",tabIndex:-1,children:[n("figcaption",{class:"between",children:[n("span",{class:"\
name",children:b(t.name)})," ",n(w,{look:"quiet",onPress:o,label:"Close the picture",children:"Close"})]}),n(D,{...s}),s.value&&n("img",{src:s.value,alt:`Pictur\
e ${b(t.name)}`})]})}async function js(e,t,o){let r=await qe(ne(["sessions",e,"files",t]),{signal:o});if(!r.ok)throw await Te(r);let s=await r.arrayBuffer(),i=Vs(
new Uint8Array(s));if(!i)throw new Error("This file isn't a picture that the page can show. You can download it.");return URL.createObjectURL(new Blob([s],{type:i}))}
function Vs(e){let t=String.fromCharCode(...e.subarray(0,12));return t.startsWith(`PNG\r

`)?"image/png":t.startsWith("ÿØÿ")?"image/jpeg":/^GIF8[79]a/.test(t)?"image/gif":/^RIFF[^]{4}WEBP/.test(t)?"image/webp":""}var St=class{turns=[];spoken=[];asks=new Map;tasks=new Map;jobs=new Map;besides=0;ready=!1;apply(t,o){switch(t){case"snapshot":return this.replace(o);case"messa\
ge":{let r=o;return this.speak(Wo(r,r.delta??"",this.turns.at(-1)?.id??""))}}return this.take(t,o)?this.besides++:this.change(t,o),new Set}take(t,o){switch(t){case"\
tasks":return this.tasks=new Map(o.map(r=>[r.id,mn(this.tasks.get(r.id),r)])),!0;case"jobs":return this.jobs=new Map(o.map(r=>[r.id,Uo(this.jobs.get(r.id),r)])),
!0;case"task":{let r=o;return this.tasks.set(r.id,mn(this.tasks.get(r.id),r)),!0}case"job":{let r=o;return this.jobs.set(r.id,Uo(this.jobs.get(r.id),r)),!0}case"\
gone":return this.tasks.delete(o),this.jobs.delete(o),!0}return!1}besideOf(t){return[...this.tasks.values(),...this.jobs.values()].filter(o=>o.turn===t)}change(t,o){
switch(t){case"ask":this.ask(o);return;case"ask_resolved":this.resolve(o);return}if(!o.turn)return;let r=this.turn(o.turn);r.version++,t.startsWith("block_")?Ys(
r,t,o):t.startsWith("tool_")?Gs(r,t,o):Qs(r,t,o)}turn(t){let o=this.turns.findLast(s=>s.id===t);if(o)return o;let r=xt(t);return this.turns.push(r),r}replace(t){
let o=new Map(this.turns.map(s=>[s.id,s]));this.turns=t.turns.map(s=>{let i=o.get(s.turn),a={...xt(s.turn),causes:s.causes,state:s.state};if(!i)return a;let{calls:l,
error:c,usage:d,compacted:u,version:v}=i;return{...a,calls:l,compacted:u,...c&&{error:c},...d&&{usage:d},version:v+1}});for(let s of t.blocks){let i=this.turns.
find(a=>a.id===s.turn);i&&Ye(i,{...pn(s),text:s.text??"",done:s.done??!0})}let r=this.leaveAside();this.spoken=Ks(this.spoken,(t.messages??[]).map(s=>Wo(s,s.text??
"",s.after??"")));for(let s of t.asks??[])this.asks.set(s.id,s);return this.ready=!0,r}leaveAside(){let t=new Set(this.turns.map(s=>s.id)),o=s=>!t.has(s.turn)&&
!(s.after===""?t.size===0:t.has(s.after)),r=new Set(this.spoken.filter(o).map(s=>s.operator?s.id:s.turn));this.spoken=this.spoken.filter(s=>!o(s));for(let[s,i]of this.
asks)i.state!=="open"&&!t.has(i.turn)&&this.asks.delete(s);return r}speak(t){if(this.spoken.some(i=>i.id===t.id))return new Set;this.spoken.push(t);let o=this.turns.
find(i=>i.id===t.turn);if(o)return o.version++,new Set;let r=new Set(this.turns.map(i=>i.id)),s=new Set(this.spoken.filter(i=>!r.has(i.turn)).slice(0,-64));return this.
spoken=this.spoken.filter(i=>!s.has(i)),new Set([...s].map(i=>i.operator?i.id:i.turn))}ask(t){let o=this.asks.get(t.id);o&&o.state!=="open"||(this.asks.set(t.id,
t),this.touch(t.turn))}resolve(t){let o=t.ask?this.asks.get(t.ask):void 0;if(!o)return;let r=t.answer==="expired"||t.answer==="withdrawn"?t.answer:"answered";this.
asks.set(o.id,{...o,state:r,...t.answer&&{answer:t.answer},...t.by&&{by:t.by}}),this.touch(o.turn)}touch(t){let o=this.turns.find(r=>r.id===t);o&&o.version++}leave(t){
let o=this.turns.splice(0,Math.max(0,Math.min(this.turns.length-t,this.mayLeave()))),r=new Set(o.map(s=>s.id));for(let[s,i]of this.asks)r.has(i.turn)&&this.asks.
delete(s);for(let s of[this.tasks,this.jobs])for(let[i,a]of s)r.has(a.turn)&&s.delete(i);return new Set([...o.flatMap(s=>[...s.causes,...s.blocks.map(i=>i.cause)]),
...o.length>0?this.leaveAside():[]])}mayLeave(){let t=this.turns.findIndex(o=>o.state==="running"||o.state==="parked");return t<0?this.turns.length:t}running(){
return this.turns.findLast(t=>t.state==="running"||t.state==="parked")}};function mn(e,t){return e?.ended&&!t.ended?e:t}function Uo(e,t){let o=e&&!t.ended&&t.printed<
e.printed?e:mn(e,t);return o.output!==void 0||e?.output===void 0||e.printed!==o.printed?o:{...o,output:e.output}}function xt(e){return{id:e,causes:[],state:"run\
ning",blocks:[],calls:new Map,compacted:0,version:0}}function Wo(e,t,o){let r=e.kind==="operator"&&{operator:{name:e.name??"",cut:e.cut??!1}};return{id:e.call??
"",turn:e.turn??"",text:t,after:o,...r,...e.command&&{command:e.command}}}function Ks(e,t){let o=new Set(t.map(i=>i.id)),r=new Map,s="";for(let i of e)o.has(i.id)?
s=i.id:i.operator||r.set(s,[...r.get(s)??[],i]);return[...r.get("")??[],...t.flatMap(i=>[i,...r.get(i.id)??[]])]}function pn(e){return{number:e.block??0,kind:e.
kind??"text",text:"",tool:e.tool??"",call:e.call??"",...e.input!==void 0&&{input:e.input},failed:e.is_error??!1,cut:e.cut??!1,cause:e.cause??"",name:e.name??"",
done:!1,late:!1}}function Ye(e,t){let o=e.blocks.findIndex(r=>r.number>=t.number);o<0?e.blocks.push(t):e.blocks[o]?.number===t.number?e.blocks[o]=t:e.blocks.splice(
o,0,t)}function Ys(e,t,o){let r=o.block??0;if(t==="block_reset"){e.blocks=e.blocks.filter(i=>i.number<r);return}if(delete e.retry,t==="block_start"){Ye(e,pn(o));
return}let s=e.blocks.find(i=>i.number===r);if(s||(s={...pn(o),late:!0},Ye(e,s)),t==="block_delta"){s.text+=o.delta??"";return}s.done=!0,o.input!==void 0&&(s.input=
o.input),s.call=o.call||s.call,s.tool=o.tool||s.tool,s.failed||=o.is_error??!1,s.cut||=o.cut??!1}function Gs(e,t,o){let r=o.call??"",s=e.calls.get(r);if(s||(s={
id:r,tool:o.tool??"",brief:"",progress:"",state:"running"},e.calls.set(r,s)),!e.blocks.some(i=>i.call===r)){let i=e.blocks.find(a=>a.kind==="tool_use"&&a.call===
""&&a.tool===o.tool);i&&(i.call=r)}switch(t){case"tool_start":s.brief=o.delta??"",s.state="running";break;case"tool_progress":s.progress=(s.progress+(o.delta??"")+
`
`).slice(-Zs);break;case"tool_end":s.state=o.error?"failed":"ended",o.error&&(s.error=o.error)}}var Zs=2e4;function Qs(e,t,o){switch(o.causes&&(e.causes=o.causes),
t){case"turn_start":e.state="running";break;case"parked":e.state="parked";break;case"turn_complete":qo(e),e.state=e.state==="cancelled"?"cancelled":"done",delete e.
retry;break;case"turn_error":qo(e),e.state=o.error?.code==="cancelled"?"cancelled":"failed",o.error&&(e.error=o.error),delete e.retry;break;case"retry":e.retry=
{attempt:o.attempt??2,after_ms:o.after_ms??0,...o.from&&{from:o.from},...o.to&&{to:o.to}};break;case"compaction":e.compacted++;break;case"usage":ei(e,o)}}function qo(e){
e.blocks=e.blocks.filter(t=>t.done)}function ei(e,t){let o=e.usage??{calls:0,input:0,output:0,microdollars:0,priced:!0,model:""};e.usage={calls:o.calls+1,input:o.
input+(t.input??0),output:o.output+(t.output??0),microdollars:o.microdollars+(t.microdollars??0),priced:o.priced&&t.microdollars!==void 0,model:t.model||o.model}}
function Ho(e){let t=new Map(e.turns.map(o=>[o.id,o]));return e.spoken.filter(o=>{let r=t.get(o.turn);return!(r&&ti(r).includes(zo(o.text)))&&!e.asks.has(o.id.split(
"#")[0]??"")})}var zo=e=>e.replace(/\s+/g,"");function ti(e){if(e.squeezed?.version!==e.version){let t=zo(e.blocks.filter(o=>o.kind==="text").map(o=>o.text).join(
""));e.squeezed={version:e.version,text:t}}return e.squeezed.text}var jo=45e3,Vo=400,ni=1e4,oi=1e4;async function Tt(e,t,o){let r={last:""},s=Vo;for(;!o.aborted;){try{await ri(e,r,t,o,()=>{s=Vo}),t.state("away")}catch(i){if(o.
aborted)return;if(i instanceof Q&&i.status>=400&&i.status<500&&i.status!==429){t.state("away",i.message);return}t.state("away")}await si(document.hidden?Number.
POSITIVE_INFINITY:s*(.75+Math.random()/2),o),s=Math.min(s*2,ni)}}async function ri(e,t,o,r,s){let i=new AbortController,a=()=>i.abort();r.addEventListener("abor\
t",a);let l=setTimeout(a,jo),c=setTimeout(()=>{},0),d=()=>{clearTimeout(c),document.hidden&&(c=setTimeout(a,oi))};document.addEventListener("visibilitychange",d);
try{let u={Accept:"text/event-stream"};t.last&&(u["Last-Event-ID"]=t.last);let v=await fetch(e,{headers:u,signal:i.signal,credentials:"same-origin",cache:"no-st\
ore"});if(!v.ok||!v.body)throw await Te(v);s(),o.state("live");let g=new fn((p,k,_)=>{p&&(t.last=p),o.event(k,JSON.parse(_))}),m=v.body.pipeThrough(new TextDecoderStream).
getReader();for(;;){let{done:p,value:k}=await m.read();if(p)return;clearTimeout(l),l=setTimeout(a,jo),g.take(k)}}finally{clearTimeout(l),clearTimeout(c),document.
removeEventListener("visibilitychange",d),r.removeEventListener("abort",a),i.abort()}}var fn=class{constructor(t){this.tell=t}tell;rest="";id="";type="";data=[];take(t){
let o=(this.rest+t).split(`
`);this.rest=o.pop()??"";for(let r of o)this.line(r.replace(/\r$/,""))}line(t){if(t===""){this.data.length>0&&this.tell(this.id,this.type,this.data.join(`
`)),this.id=this.type="",this.data=[];return}let o=t.indexOf(":");if(o===0)return;let r=o<0?t:t.slice(0,o),s=o<0?"":t.slice(o+1).replace(/^ /,"");r==="id"?this.
id=s:r==="event"?this.type=s:r==="data"&&this.data.push(s)}};function si(e,t){return new Promise(o=>{let r=()=>{clearTimeout(i),removeEventListener("online",r),
document.removeEventListener("visibilitychange",s),t.removeEventListener("abort",r),o()},s=()=>{document.visibilityState==="visible"&&r()},i=Number.isFinite(e)?
setTimeout(r,e):void 0;addEventListener("online",r),document.addEventListener("visibilitychange",s),t.addEventListener("abort",r)})}var ii=120,ai=10,Et=class{constructor(t,o){this.key=t;this.known=o}key;known;whole=!1;end=-1;rest=[];async read(t){let o=this.rest,r=this.end<0?await this.last(
t):this.end,s=0;for(;r>0&&s<=ai;){let a=Math.max(0,r-ii),l=await this.between(a,r,t);s+=l.filter(c=>c.kind==="turn_started").length,o=[...l,...o],r=a}this.end=r,
this.whole=r<=0;let i=this.whole?0:o.findIndex(a=>a.kind==="turn_started");return this.rest=i<0?o:o.slice(0,i),i<0?[]:hn(o.slice(i),this.key)}async last(t){let{
last:o}=await y(["sessions",this.key],{after:Number.MAX_SAFE_INTEGER,limit:1},t);return o}async between(t,o,r){let{entries:s}=await gn(this.key,t,o,r),i=this.known();
return s.filter(a=>!i.has(a.turn)&&!i.has(a.data?.of??""))}};async function gn(e,t,o,r){let s=[];for(let i=t;i<o;){let{entries:a,next:l}=await y(["sessions",e],
{after:i,limit:o-i},r);if(s.push(...a.filter(c=>c.n<=o)),l===void 0)return{entries:s,last:!0};i=l}return{entries:s,last:!1}}function hn(e,t,o=!1){let r=new Map,
s=[];for(let i of e){let a=i.data??{},l=li(i,a,t);l&&s.push(l);let c=r.get(i.turn);if(!c){if(i.kind!=="turn_started"&&!(o&&Ko(i,a)))continue;c={...xt(i.turn),state:"\
done",asks:[]},r.set(i.turn,c),s.push(c)}ci(c,i,a,t),i.kind==="turn_done"&&(c.state=a.state??"done");let d=Ko(i,a);d&&Ye(c,d)}for(let i of r.values())i.asks=i.asks?.
filter(a=>a.state!=="open")??[];return s.filter(i=>!("blocks"in i)||i.blocks.length>0)}function li(e,t,o){let r=e.kind==="notice"&&t.code==="operator"?t.quotes?.[0]:
void 0;return r?{id:t.of??e.turn,turn:"",text:r.text,after:"",operator:{name:r.name??"",cut:!1}}:e.kind!=="command"||!t.reply?.text||!["web","console"].includes(
ae(o).channel)?null:{id:t.reply.id+"/0",turn:e.turn,text:t.reply.text,after:"",command:t.name??""}}function ci(e,t,o,r){let s=e.asks??[],i=(a,l)=>{e.asks=s.map(
c=>a(c)?{...c,...l}:c)};t.kind==="turn_parked"&&(e.asks=[...s,...(o.asks??[]).flatMap(a=>di(a,e,r,t.at))]),t.kind==="ask_ended"&&i(a=>a.id===o.ask,{state:o.state,
...o.answer&&{answer:o.answer},...t.person&&{by:t.person}}),t.kind==="turn_done"&&i(a=>a.state==="open",{state:"withdrawn"})}function di({id:e,call:t,kind:o,expires:r,
...s},i,a,l){if(o==="task")return[];let c=i.blocks.find(v=>v.kind==="tool_use"&&v.call===t),d={id:e,kind:o,session:a,turn:i.id,person:"",at:l,expires:r,state:"o\
pen",...s.reason&&{reason:s.reason}};if(o==="question")return[{...d,...s.question&&{question:s.question},...s.choices&&{choices:s.choices}}];let u=s.args??c?.input;
return[{...d,tool:c?.tool??"",arguments:u,shown:ui(s.shown??"",s.shown_of??[],u)}]}function ui(e,t,o){if(!e)return[];let r=Object.entries(o??{}).filter(([s])=>!t.
includes(s));return[{text:e},...r.map(([s,i])=>({name:s,text:typeof i=="string"?i:JSON.stringify(i)}))]}function Ko(e,t){if(!["user","thinking","text","tool_use",
"tool_result"].includes(e.kind))return null;let o={number:e.n,kind:e.kind,call:e.call??"",cause:e.cause??"",cut:!1,done:!0,late:!1};switch(e.kind){case"tool_use":
return{...o,text:"",tool:t.name??"",name:"",input:t.args,failed:!1};case"tool_result":return{...o,text:JSON.stringify(t.content??""),tool:"",name:"",failed:!!t.
code};default:return{...o,text:t.text??"",tool:"",name:t.name??"",failed:!1}}}var Yo=50,Go=250,mi=5e3,Pt=class{constructor(t,o,r,s){this.session=t;this.mayJobs=o;this.take=r;this.left=s;s.addEventListener("abort",Io(i=>this.hear(i)))}session;mayJobs;take;left;wanted=new Set;begun=!1;reading=!1;readAll(){
this.begun=!0,this.want("all")}readJob(t){this.want("jobs/"+t)}hear({kind:t,session:o,id:r}){if(this.begun)if(t==="reset")this.readAll();else{if(o!==this.session)
return;t==="task"?this.want(r?"tasks/"+r:"all"):(t==="job"||t==="job_output")&&r&&this.want("jobs/"+r)}}want(t){t.startsWith("jobs/")&&!this.mayJobs||(this.wanted.
add(t),this.reading||this.readIn(Go))}readIn(t){this.reading=!0,setTimeout(()=>{this.read()},t)}async read(){let t=!1;for(let o of[...this.wanted]){if(this.left.
aborted)return;this.wanted.delete(o);try{await(o==="all"?this.readLists():this.readOne(o))}catch(r){if(this.left.aborted)return;let s=r instanceof Q?r.status:0;
s===404?this.take("gone",o.slice(o.indexOf("/")+1)):s===0||s===429||s>=500?(this.wanted.add(o),t=!0):this.begun=!1}}this.reading=!1,this.wanted.size>0&&this.readIn(
t?mi:Go)}async readLists(){let{tasks:t}=await y(["tasks"],{session:this.session,limit:Yo},this.left);if(this.take("tasks",t),!this.mayJobs)return;let{jobs:o}=await y(
["jobs"],{session:this.session,limit:Yo},this.left);this.take("jobs",o);for(let r of o)r.state==="running"&&this.wanted.add("jobs/"+r.id)}async readOne(t){let[o="",
r=""]=t.split("/");this.take(o==="tasks"?"task":"job",await y([o,r],{},this.left))}};var pi=3e3,fi=8,gi=120,Zo=90,hi=2,Ct=class{constructor(t,o,r,s,i){this.key=t;this.changed=o;let a=(l,c)=>{this.log.apply(l,c),this.draw()};this.work=new Pt(t,s,
a,this.left.signal),this.messages=[...i,...Ve.get(t).filter(l=>!i.some(c=>c.key===l.key))],this.first=this.messages.filter(l=>!l.id),Ve.set(t,this.messages),Tt(
ne(["sessions",t,"events"]),{event:(l,c)=>{this.apply(l,c),l==="snapshot"&&this.work.readAll(),l==="snapshot"&&r&&this.readAsks(),this.draw()},state:(l,c="")=>{
this.live=l==="live",this.live&&this.begin(),this.away=c,this.draw()}},this.left.signal),setTimeout(()=>this.begin(),pi)}key;changed;log=new St;messages=[];live=!1;away="";problem="";earlier=[];first;past=null;left=new AbortController;work;frame=0;trims=!1;begin(){
if(!this.left.signal.aborted)for(let t of this.first.splice(0))this.send(t)}apply(t,o){let r=this.log.turns[0]?.id;this.leave(this.log.apply(t,o)),r!==void 0&&this.
log.turns[0]?.id!==r&&(this.earlier=[],this.past=null),this.log.turns.length>gi&&!this.trims&&this.log.mayLeave()>0&&(this.trims=!0,Qo(()=>this.trim()))}leave(t){
t.size!==0&&(this.messages=this.messages.filter(o=>!o.id||!t.has(o.id)),Ve.set(this.key,this.messages))}trim(){if(this.left.signal.aborted)return;let t=this.log.
turns.length;this.earlier.length>0?this.earlier=this.earlier.slice(1):this.leave(this.log.leave(Math.max(Zo,t-hi))),this.past=null,this.draw(),this.trims=this.earlier.
length>0||this.log.turns.length<t&&this.log.turns.length>Zo,this.trims&&requestAnimationFrame(()=>Qo(()=>this.trim()))}mayHaveEarlier(){return this.past?!this.past.
whole:this.log.turns.length>=fi}async readEarlier(){let t=this.past??=new Et(this.key,()=>this.shown()),o=await t.read(this.left.signal);this.past===t&&(o.length>
0&&(this.earlier=[o,...this.earlier]),this.work.readAll(),this.draw())}shown(){let t=new Set;for(let o of[...this.log.turns,...this.log.spoken,...this.earlier.flat()])
t.add(o.id),"turn"in o&&t.add(o.turn);return t.delete(""),t}readJob=t=>this.work.readJob(t);close(){this.left.abort(),cancelAnimationFrame(this.frame)}say(t,o){
this.add(je(this.key,t,o))}sayAsOperator(t){this.add({...je(this.key,t,[]),operator:!0})}add(t){this.messages=[...this.messages,t],this.send(t)}async send(t){let o=()=>{
Ve.set(this.key,this.messages),this.draw()};await Po(t,o),t.operator&&await Co(t,o,()=>!this.pending().includes(t),this.left.signal)}drop(t){this.messages=this.
messages.filter(o=>o!==t),this.draw()}pending(){let t=new Set;for(let o of this.log.turns){for(let r of o.causes)t.add(r);for(let r of o.blocks)r.kind==="user"&&
t.add(r.cause)}for(let o of this.log.spoken)t.add(o.operator?o.id:o.turn);return this.messages.filter(o=>!o.id||!t.has(o.id))}sentOf(t){return this.messages.filter(
o=>o.id&&t.causes.includes(o.id)&&!t.blocks.some(r=>r.kind==="user"&&r.cause===o.id))}aside(t,o){let r=new Map(this.messages.map(s=>[s.id,s]));return t.filter(s=>!o.
has(s.turn)).map(s=>{let i=s.turn?r.get(s.turn):void 0;return r.delete(s.turn),i?{message:i,spoken:s}:{spoken:s}})}async readAsks(){try{let{asks:t}=await y(["as\
ks"],{session:this.key},this.left.signal);for(let o of t)this.log.apply("ask",o);this.problem=""}catch(t){if(this.left.signal.aborted)return;this.problem="Could\
n't load the open requests: "+Je(t)}this.draw()}draw(){this.frame||(this.frame=requestAnimationFrame(()=>{this.frame=0,this.changed()}))}};function Qo(e){"reque\
stIdleCallback"in window?requestIdleCallback(e,{timeout:er}):setTimeout(e,er)}var er=250;function At(e){let t=e.shown??[];return(t.length>0||e.arguments===void 0?t:[{text:JSON.stringify(e.arguments,null,2)}]).map(r=>({...r,text:b(r.text)}))}function tr(e){
return e.reduce((t,o)=>t+o.text.split(`
`).length,0)}function Le({parts:e,tool:t,most:o=1/0}){let r=o,s=[];for(let i of e){if(r<=0)break;let a=i.text.split(`
`).slice(0,r);r-=a.length,s.push({part:i,lines:a})}return n("div",{class:"preview",children:s.map(({part:i,lines:a})=>{let l=i.name&&b(i.name);return n("div",{children:[
l&&n("h3",{children:l}),n("pre",{tabIndex:0,role:"region","aria-label":l||"What would run",children:a.map((c,d)=>n(vi,{text:c,marked:!i.name&&bi(i.text,t)},d))})]},
i.name??"")})})}function bi(e,t){return t==="write_file"?!/^[^\n]*(a new file|all of it):\n/.test(e):t==="edit_file"||t==="apply_patch"}function vi({text:e,marked:t}){
let o="";return t&&e.startsWith("+")?o="plus":t&&e.startsWith("-")?o="minus":t&&/^(@@|\*\*\*)/.test(e)&&(o="head"),n("span",{class:"preview-line "+o,children:e+
`
`})}function nr(e,t){if(t.owner)return"";let o=e.person==="web:"+t.name;return e.kind==="question"?o&&(t.may.agent||t.may.approve)?"":"Only an owner or the person w\
ho started this turn can answer.":o?"You started this turn yourself, so someone else needs to approve the call.":t.may.approve?"":"Your token needs the approve \
scope to decide this."}function Jt(e,t,o=""){return W(["asks",e.id],o?{answer:t,reason:o}:{answer:t})}function Mt({ask:e}){return e.kind==="question"?n(h,{children:"The agent has a question"}):n(h,{children:[n("code",{children:b(e.tool??"A tool")})," needs appro\
val"]})}function Bt({ask:e,me:t,most:o,onDone:r}){let s=nr(e,t);return n(h,{children:[e.reason&&n("p",{children:["Reason: ",b(e.reason)]}),e.kind==="question"?n(
yi,{ask:e,closed:s!=="",onDone:r}):n(wi,{ask:e,closed:s!=="",most:o,onDone:r}),s&&n("p",{class:"note",children:s})]})}function wi({ask:e,closed:t,most:o,onDone:r}){
let s=At(e),i=tr(s),[a,l]=f(i<=o),[c,d]=f(""),[u,v]=f(""),[g,m]=f(null),p=b(e.tool??"the call"),k=async x=>r(await Jt(e,x)),_=x=>()=>a?k(x):v(x),C=async()=>r(await Jt(
e,"deny",c.trim()));return n(h,{children:[n(Le,{parts:s,tool:e.tool,most:a?1/0:o}),!a&&n("div",{children:n(w,{onPress:()=>l(!0),children:["Show all ",i," lines"]})}),
n(M,{error:g}),!t&&n(h,{children:[n("div",{class:"decide",children:[n(w,{look:"main",onPress:_("approve"),onError:m,label:`Approve once: ${p}`,children:"Approve\
 once"}),n(w,{onPress:_("session"),onError:m,label:`Approve for this session: ${p}`,children:"Approve for this session"}),n("label",{class:"away",for:"reason-"+
e.id,children:"Reason for denying, which the agent sees"}),n("input",{id:"reason-"+e.id,placeholder:"Why not? (optional)",value:c,onInput:x=>d(x.currentTarget.value)}),
n(w,{look:"danger",onPress:C,onError:m,label:`Deny: ${p}`,children:"Deny"})]}),n("p",{class:"faint",children:"If you approve it for this session, exactly the sa\
me call runs there again without asking."})]}),u&&n(fe,{title:"You haven't seen all of it",confirm:"Approve anyway",onConfirm:()=>k(u),onClose:()=>v(""),children:[
"The call has ",i," lines. You see the first ",o,"."]})]})}function yi({ask:e,closed:t,onDone:o}){let[r,s]=f(""),[i,a]=f(null),l=async d=>o(await Jt(e,d)),c=()=>l(
r.trim());return n(h,{children:[n("p",{class:"question",children:b(e.question??"")}),n(M,{error:i}),!t&&e.choices&&e.choices.length>0&&n("div",{class:"decide",children:e.
choices.map((d,u)=>n(w,{onPress:()=>l(d),onError:a,children:b(d)},u))}),!t&&n("form",{class:"decide",onSubmit:d=>{d.preventDefault(),r.trim()&&c().catch(a)},children:[
n("label",{class:"away",for:"words-"+e.id,children:"Your answer"}),n("input",{id:"words-"+e.id,placeholder:"Answer in your own words",value:r,onInput:d=>s(d.currentTarget.
value)}),n(w,{disabled:!r.trim(),onPress:c,onError:a,children:"Answer"})]})]})}var ki=15;function bn({ask:e,me:t}){let[o,r]=f(null),s=e.state==="open"&&o?o:e;if(s.state!=="open")return n(_i,{ask:s,me:t});let i="ask-"+e.id;return n("div",{class:"\
ask open",role:"group","aria-labelledby":i,children:[n("div",{class:"ask-title",id:i,children:n(Mt,{ask:e})}),n(Bt,{ask:e,me:t,most:ki,onDone:r}),n("div",{class:"\
faint",children:["Expires ",n(T,{at:e.expires})]})]})}function _i({ask:e,me:t}){return n("details",{class:"ask ended",children:[n("summary",{children:[e.kind===
"question"?b(e.question??""):n("code",{children:b(e.tool??"")})," ",n("strong",{children:xi(e,t)})]}),e.reason&&n("div",{children:["Reason: ",b(e.reason)]}),e.kind===
"approval"&&n(Le,{parts:At(e),tool:e.tool})]})}var Si={approve:"Approved",session:"Approved for this session",deny:"Denied"};function xi(e,t){if(e.state==="expi\
red")return"Expired: nobody answered in time";if(e.state==="withdrawn")return"Withdrawn";let o=e.by?e.by==="web:"+t.name?" by you":" by "+b(e.by):"",r=e.answer??
"";return(e.kind==="approval"?Si[r]??"Answered":b(r))+o}function Ot(e){switch(e.state){case"running":return["running",e.stopping?"stopping":"running"];case"exited":return[e.exit_code?"failed":"ok",`exit code ${e.exit_code??
0}`];case"stopped":return["over","stopped"];case"killed":return["failed","ended at a limit"];case"failed":return["failed","couldn't be run"];default:return["unk\
nown","outcome unknown"]}}function Lt({of:e,session:t}){return n(h,{children:["This ends ",n("code",{class:"name",children:b(e.command)}),t&&n(h,{children:[" of\
 ",n("span",{class:"name",children:b(t)})]}),", which may leave its work half done. The conversation is told."]})}var ue=class extends te{#e="";#t=[];shouldComponentUpdate(t){return t.text!==this.props.text}render(){let{text:t}=this.props;t.startsWith(this.#e)||(this.#e="",
this.#t=[]);let o=t.slice(this.#e.length).split(`
`),r=sr(o,0),s=r.at(-2);return s&&s.at>0&&(this.#e+=o.slice(0,s.at).join(`
`)+`
`,this.#t.push(...r.splice(0,r.length-2).map(i=>i.part))),n("div",{class:"markdown",children:[...this.#t,...r.map(i=>i.part)]})}},rr=6;function yn(e,t){return sr(
e,t).map(o=>o.part)}function sr(e,t){let o=[],r=0;for(;r<e.length;){let s=e[r]??"";if(s.trim()===""){r++;continue}let[i,a]=Ti(e,r)??Ei(e,r)??Pi(s,r)??Ci(s,r)??Ai(
e,r)??Ji(e,r,t)??Mi(e,r,t)??Oi(e,r);o.push({part:i,at:r}),r=a}return o}function Ti(e,t){let o=/^ {0,3}(`{3,}|~{3,})\s*([^`]*)$/.exec(e[t]??"");if(!o)return null;
let r=o[1]??"```",s=[],i=t+1;for(;i<e.length;i++){let a=e[i]??"",l=a.trim();if(l.startsWith(r)&&l.replaceAll(r[0]??"`","")==="")break;s.push(a)}return[n($t,{text:s.
join(`
`),language:(o[2]??"").trim().split(/\s/)[0]??""}),i+1]}function Ei(e,t){let o=/^( {4}|\t)/;if(!o.test(e[t]??""))return null;let r=[],s=t;for(;s<e.length&&(o.test(
e[s]??"")||(e[s]??"").trim()==="");s++)r.push((e[s]??"").replace(o,""));return[n($t,{text:r.join(`
`).trimEnd()}),s]}function $t({text:e,language:t=""}){return n("div",{class:"code",children:[n("div",{class:"code-bar",children:[n("span",{children:t}),n("butto\
n",{type:"button",onClick:r=>{let s=r.currentTarget;navigator.clipboard?.writeText(e).then(()=>{s.textContent="Copied"})},children:"Copy"})]}),n("pre",{tabIndex:0,
children:n("code",{children:e})})]})}function Pi(e,t){let o=/^ {0,3}(#{1,6})\s+(.*?)\s*#*$/.exec(e);if(!o)return null;let r=le(o[2]??""),s=o[1]?.length??1;return s===
1?[n("h3",{class:"large",children:r}),t+1]:[s===2?n("h3",{children:r}):n("h4",{children:r}),t+1]}function Ci(e,t){return/^ {0,3}([-*_])\s*(\1\s*){2,}$/.test(e)?
[n("hr",{}),t+1]:null}var vn=e=>e.trim().replace(/^\||\|$/g,"").split(/(?<!\\)\|/).map(t=>t.trim().replaceAll("\\|","|"));function Ai(e,t){let o=e[t]??"";if(!o.
includes("|")||!/^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$/.test(e[t+1]??""))return null;let r=vn(o);if(r.length!==vn(e[t+1]??"").length)return null;let s=[],
i=t+2;for(;i<e.length&&(e[i]??"").includes("|");i++)s.push(vn(e[i]??""));return[n("div",{class:"table",tabIndex:0,role:"region","aria-label":"Table",children:n(
"table",{children:[n("thead",{children:n("tr",{children:r.map(l=>n("th",{scope:"col",children:le(l)}))})}),n("tbody",{children:s.map(l=>n("tr",{children:r.map((c,d)=>n(
"td",{children:le(l[d]??"")}))}))})]})}),i]}function Ji(e,t,o){if(o>=rr||!/^ {0,3}>/.test(e[t]??""))return null;let r=[],s=t;for(;s<e.length&&/^ {0,3}>/.test(e[s]??
"");s++)r.push((e[s]??"").replace(/^ {0,3}> ?/,""));return[n("blockquote",{children:yn(r,o+1)}),s]}var Dt=/^( *)([-*+]|\d{1,9}[.)])(?:\s+(.*))?$/,Xt=e=>e.slice(
-1),ye=e=>e.length-e.trimStart().length;function Mi(e,t,o){let r=Dt.exec(e[t]??"");if(!r||o>=rr)return null;let s=(r[1]??"").length,i=r[2]??"",a=[],l=!1,c=t,d=0;
for(;c<e.length;){let v=e[c]??"",g=Dt.exec(v),m=g!==null&&ye(v)<s+2&&ye(v)>=s;if(v.trim()===""){let p=c+1;for(;p<e.length&&(e[p]??"").trim()==="";)p++;let k=e[p]??
"",_=Dt.exec(k),C=_!==null&&ye(k)>=s&&Xt(_[2]??"")===Xt(i);if(p===e.length||!(C||ye(k)>=d))break;l||=ye(k)<d+2,a.at(-1)?.push(""),c=p}else if(m){if(Xt(g[2]??"")!==
Xt(i))break;d=ye(v)+(g[2]??"").length+1,a.push([g[3]??""]),c++}else if(ye(v)>s)a.at(-1)?.push(v.slice(Math.min(ye(v),d))),c++;else break}let u=a.map(v=>n("li",{
children:l?yn(v,o+1):Bi(v,o)}));return[/\d/.test(i)?n("ol",{start:Number.parseInt(i,10),children:u}):n("ul",{children:u}),c]}function Bi(e,t){let[o="",...r]=e,s=/^\[([ xX])\]\s+(.*)$/.
exec(o),i=[s?s[2]??"":o];for(;r.length>0&&(r[0]??"").trim()!==""&&!Dt.test(r[0]??"")&&!/^ {0,3}(```|~~~|>|#)/.test(r[0]??"");)i.push(r.shift()??"");return[s?s[1]===
" "?"☐ ":"☑ ":null,le(i.join(`
`)),r.some(l=>l.trim())?yn(r,t+1):null]}function Oi(e,t){let o=[],r=t;for(;r<e.length;r++){let s=e[r]??"";if(s.trim()===""||r>t&&/^ {0,3}(`{3,}|~{3,}|#{1,6}\s|>|[-*+]\s|\d{1,9}[.)]\s)/.
test(s))break;o.push(s)}return[n("p",{children:le(o.join(`
`))}),r]}var Li=[{at:/^\\([!-/:-@[-`{-~])/,make:e=>e[1]},{at:/^(`+)([^`]|[^`][\s\S]*?[^`])\1(?!`)/,make:e=>n("code",{children:(e[2]??"").replace(/^ (.*) $/,"$1")})},
{at:/^!?\[((?:[^[\]\\]|\\.)*)\]\(\s*<?([^\s<>()]*(?:\([^\s()]*\)[^\s<>()]*)*)>?(?:\s+"[^"]*")?\s*\)/,make:e=>wn(e[2]??"",le(e[1]??""),e[0])},{at:/^<(https?:\/\/[^\s<>]+|mailto:[^\s<>]+)>/,
make:e=>wn(e[1]??"",e[1]??"",e[0])},{at:/^https?:\/\/[^\s<>"'`]*[^\s<>"'`.,;:!?)\]}*_~]/,make:e=>wn(e[0],e[0],e[0])},{at:/^\*\*\*(?=[^\s*])([^*]*?[^\s*])\*\*\*/,
make:e=>n("strong",{children:n("em",{children:le(e[1]??"")})})},{at:/^\*\*(?=\S)((?:[^*]|\*(?!\*))*?\S)\*\*/,make:e=>n("strong",{children:le(e[1]??"")})},{at:/^__(?=\S)((?:[^_]|_(?!_))*?\S)__(?!\w)/,
make:e=>n("strong",{children:le(e[1]??"")})},{at:/^\*(?=[^\s*])([^*]*?[^\s*])\*(?!\*)/,make:e=>n("em",{children:le(e[1]??"")})},{at:/^_(?=[^\s_])([^_]*?[^\s_])_(?!\w)/,
make:e=>n("em",{children:le(e[1]??"")})},{at:/^~~(?=\S)([^~]*?\S)~~/,make:e=>n("s",{children:le(e[1]??"")})},{at:/^(?: *|\\)\n */,make:()=>n("br",{})},{at:/^&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z][a-zA-Z0-9]{1,31});/,
make:e=>Xi(e[0])}];function Xi(e){return new DOMParser().parseFromString(e,"text/html").body.textContent??e}var or=/[\\`![<*_~h&]| *\n/g;function le(e){let t=[],
o="",r=0;for(;r<e.length;){or.lastIndex=r;let s=or.exec(e);if(!s)break;o+=e.slice(r,s.index),r=s.index;let i=$i(e,r);if(!i){o+=e[r],r++;continue}o&&t.push(o),o=
"",t.push(i.part),r+=i.length}return o+=e.slice(r),o&&t.push(o),t}var Di=2e3;function $i(e,t){let o=e[t-1]??" ",r=e[t]??"";if((r==="_"||r==="h"||r==="*"&&e[t+1]!==
"*")&&/\w/.test(o))return null;let i=e.slice(t,t+Di);for(let a of Li){let l=a.at.exec(i);if(l)return{part:a.make(l),length:l[0].length}}return null}function wn(e,t,o){
return ar(e)?n("a",{href:e,target:"_blank",rel:"noopener noreferrer",children:t}):o.startsWith("<")?o:[t,` (${e})`]}function ir(e){return/^https?:/i.test(e)&&ar(
e)}function ar(e){try{return/^(https?:\/\/|mailto:)/i.test(e)&&["http:","https:","mailto:"].includes(new URL(e).protocol)}catch{return!1}}function lr({of:e,me:t,readJob:o}){return"command"in e?n(Fi,{job:e,me:t,read:()=>o(e.id)}):n(Ri,{task:e})}var Ni={prepared:["waiting","waiting to start"],running:[
"running","working"],waiting:["waiting","waiting for an answer"],done:["ok","done"],failed:["failed","failed"],cancelled:["over","stopped"],lost:["unknown","its\
 session was erased"]};function Ri({task:e}){let[t,o]=Ni[e.state],r=e.state==="running"&&e.tools?"running "+e.tools.map(b).join(", "):o,s=e.usage.input+e.usage.
output;return n("div",{class:"beside task "+t,role:"group","aria-label":"Sub-agent "+b(e.agent),children:[n("div",{class:"beside-line",children:[n("span",{class:"\
mark","aria-hidden":"true"}),n("span",{children:["Sub-agent ",n("strong",{children:b(e.agent)})]}),n("span",{class:"beside-state",children:e.stopping?"stopping":
r}),!e.ended&&n("span",{class:"faint",children:["for ",n(de,{at:e.started})]}),e.usage.calls>0&&n("span",{class:"faint",title:X(e.usage.calls,"model call"),children:[
P(s)," tokens"]}),e.state!=="lost"&&n("a",{href:L("chat",e.session),"aria-label":"Open its session: sub-agent "+b(e.agent),children:"Open its session"})]}),e.title&&
n("div",{class:"faint",children:b(e.title)}),e.report&&n("details",{class:"beside-more",children:[n("summary",{children:e.state==="done"?"Its answer":"What it r\
eported"}),n(ue,{text:e.report}),e.cut&&n("p",{class:"faint",children:"This is only the beginning. The sub-agent's session has the rest."})]})]})}var Ii=12;function Fi({
job:e,me:t,read:o}){let[r,s]=f(!1),[i,a]=Ot(e),l=b(e.command),c=async()=>{await Y(["jobs",e.id]),o()};return n("div",{class:"beside job "+i,role:"group","aria-l\
abel":"Background job "+l,children:[n("div",{class:"beside-line",children:[n("span",{class:"mark","aria-hidden":"true"}),n("code",{class:"beside-command",children:l}),
n("span",{class:"beside-state",children:a}),e.state==="running"&&n("span",{class:"faint",children:["for ",n(de,{at:e.started})]}),t.may.admin&&e.state==="runnin\
g"&&!e.stopping&&n(w,{look:"danger",onPress:()=>s(!0),label:"Stop "+l,children:"Stop…"})]}),e.detail&&n("div",{class:"faint",children:b(e.detail)}),e.state===
"running"?n(Ui,{job:e}):n(Wi,{job:e,read:o}),r&&n(fe,{title:"Stop this job?",confirm:"Stop job",danger:!0,onConfirm:c,onClose:()=>s(!1),children:n(Lt,{of:e})})]})}
function Ui({job:e}){if(!e.output)return null;let t=e.output.trimEnd().split(`
`);return n(cr,{text:t.slice(-Ii).join(`
`),label:"Newest output of "+b(e.command)})}function Wi({job:e,read:t}){return e.printed===0?null:n("details",{class:"beside-more",onToggle:r=>{r.currentTarget instanceof
HTMLDetailsElement&&r.currentTarget.open&&e.output===void 0&&t()},children:[n("summary",{children:["Output, ",j(e.printed)]}),e.output===void 0?n("p",{class:"fa\
int",children:"Loading…"}):n(cr,{text:e.output,label:"Output of "+b(e.command)})]})}function cr({text:e,label:t}){return n("pre",{class:"beside-output",tabIndex:0,
role:"region","aria-label":t,children:b(e)})}var qi={writing:"writing",waiting:"waiting",running:"running",ok:"done",failed:"failed",unknown:"outcome unknown",over:"ended"},Ge=class extends te{drawn="";shouldComponentUpdate(t){
return dr(t)!==this.drawn}render(){return this.drawn=dr(this.props),n(Hi,{...this.props})}};function dr({call:e,use:t,result:o,over:r}){let s=e?.progress??"";return JSON.
stringify([r,e?.id,e?.state,e?.brief,s.length,s.slice(-80),e?.error?.code,t?.text.length,t?.done,t?.call,t?.tool,t?.cut,o?.text.length,o?.done,o?.failed,o?.cut])}
function Hi({call:e,use:t,result:o,over:r}){let s=t?.tool||e?.tool||"tool",i=Vi(t),a=i?Nt(i.others):Ki(t),l=o?Yi(o.text):"",c=zi(e,t,o,r),d=e?.error;return n("d\
etails",{class:"call "+c,children:[n("summary",{children:[n("span",{class:"mark","aria-hidden":"true"}),n("span",{class:"call-name",children:b(s)}),n("span",{class:"\
call-brief",children:b(e?.brief||Gi(i?i.others:t?.input,a))}),n("span",{class:"call-state",children:qi[c]})]}),n("div",{class:"call-body",children:[i&&n("div",{
class:"labeled",children:[n("div",{class:"faint",children:["Change",t?.cut&&pr]}),n(Le,{parts:[{text:b(i.lines)}],tool:s})]}),a!==""&&n(kn,{title:"Arguments",text:b(
a),cut:t?.cut}),c==="running"&&e?.progress&&n(kn,{title:"Progress",text:e.progress}),d&&n("p",{class:"call-error",children:[d.message," ",n("span",{class:"faint",
children:["(",d.code,")"]})]}),c==="unknown"&&n("p",{class:"call-error",children:"The call was interrupted. It may or may not have taken effect."}),o&&l!==""&&!(d&&
l.includes(d.message))&&n(kn,{title:"Result",text:l,cut:o.cut})]})]})}var pr=" (shortened; the log has the full text)";function kn({title:e,text:t,cut:o}){return n(
"div",{class:"labeled",children:[n("div",{class:"faint",children:[e,o&&pr]}),n($t,{text:t})]})}function zi(e,t,o,r){return e?.error?.code===ur||o?.failed&&ji(o.
text)===ur?"unknown":o?o.failed?"failed":"ok":e&&e.state!=="running"?e.state==="failed"?"failed":"ok":r?"over":e?"running":t&&!t.done?"writing":"waiting"}var ur="\
outcome_unknown";function ji(e){return/"code"\s*:\s*"([a-z_]+)"/.exec(e)?.[1]??""}function Vi(e){if(e?.input===null||typeof e?.input!="object")return null;let{old_text:t,
new_text:o,patch:r,...s}=e.input;return e.tool==="apply_patch"&&typeof r=="string"?{lines:r,others:s}:e.tool!=="edit_file"||typeof t!="string"||typeof o!="strin\
g"?null:{lines:[...mr("-",t),...mr("+",o)].join(`
`),others:s}}var mr=(e,t)=>t===""?[]:t.replace(/\n$/,"").split(`
`).map(o=>e+o);function Ki(e){if(!e)return"";if(e.input!==void 0)return Nt(e.input);try{return Nt(JSON.parse(e.text))}catch{return e.text}}function Nt(e){return typeof e==
"string"?e:e!==null&&typeof e=="object"&&Object.keys(e).length===0?"":JSON.stringify(e,null,2)}function Yi(e){try{return Nt(JSON.parse(e))}catch{return e}}function Gi(e,t){
let r=(e!==null&&typeof e=="object"?Object.values(e).filter(s=>typeof s!="object").join("  "):t).replace(/\s+/g," ").trim();return r.length>160?r.slice(0,160)+"\
…":r}var Ee=class extends te{shouldComponentUpdate(t){let o=this.props;return t.turn!==o.turn||t.version!==o.version||t.sent.length!==o.sent.length||t.said.length!==
o.said.length||t.asks.length!==o.asks.length||!Zi(t.beside,o.beside)}render(){let{turn:t,sent:o,said:r,asks:s,beside:i,readJob:a,me:l,numbered:c}=this.props,d=new Map(
t.blocks.filter(p=>p.kind==="tool_result").map(p=>[p.call,p])),{placed:u,rest:v}=Qi(s,t),g=p=>p.map(k=>n(lr,{of:k,me:l,readJob:a},k.id)),m=new Set(t.blocks.filter(
p=>p.kind==="tool_use").map(p=>p.call));return n("div",{class:"turn",role:"group","aria-label":"Turn",children:[o.map(p=>n(Xe,{text:p.text,files:p.files},p.key)),
t.blocks.map(p=>{let k=n(na,{me:l,block:p,turn:t,result:p.call?d.get(p.call):void 0});return n(h,{children:[c&&ea(p)?n("div",{class:"numbered "+p.kind,"data-n":p.
number,children:k}):k,u.get(p)?.map(_=>n(bn,{ask:_,me:l},_.id)),p.kind==="tool_use"&&g(i.filter(_=>_.call===p.call))]},p.number)}),ta(t).map(p=>n(Ge,{call:p,over:_n(
t)},p.id)),g(i.filter(p=>!m.has(p.call))),v.map(p=>n(bn,{ask:p,me:l},p.id)),r.map(p=>n("div",{class:"spoken",children:n(ue,{text:p.text})},p.id)),n(sa,{turn:t,told:r.
length>0,me:l})]})}};function Zi(e,t){return e.length===t.length&&e.every((o,r)=>o===t[r])}function Qi(e,t){let o=new Map,r=[];for(let s of e){let i=t.blocks.find(
a=>a.kind==="tool_use"&&a.tool===s.tool&&!o.has(a));i?o.set(i,[s]):r.push(s)}return{placed:o,rest:r}}var ea=e=>e.kind!=="tool_result"&&(e.kind==="tool_use"||e.kind===
"user"||e.text.trim()!==""),_n=e=>e.state!=="running"&&e.state!=="parked";function ta(e){return[...e.calls.values()].filter(t=>!e.blocks.some(o=>o.kind==="tool_\
use"&&o.call===t.id))}function na({me:e,block:t,turn:o,result:r}){switch(t.kind){case"user":return n(Xe,{text:t.text,name:t.name===e.name?"":t.name,cut:t.cut,children:n(
Ze,{of:t.cause===o.id?"":t.cause,me:e})});case"thinking":return t.text.trim()?n(oa,{block:t}):null;case"text":return t.text.trim()?n("div",{class:"answer",children:n(
ue,{text:t.late?"… "+t.text.trimStart():t.text})}):null;case"tool_use":return n(Ge,{call:o.calls.get(t.call),use:t,result:r,over:_n(o)});default:return null}}
function Ze({of:e,me:t}){return t.may.admin&&e?n("div",{class:"standing",children:n(V,{of:e})}):null}function oa({block:e}){return n("details",{class:"thought",
children:[n("summary",{children:e.done?"Thought":"Thinking…"}),n(ue,{text:e.text})]})}function Xe({text:e,name:t,files:o=[],cut:r,children:s}){return n("div",
{class:"said",children:[t&&n("div",{class:"said-name",children:t}),e&&n("div",{class:"said-text",children:[e,r&&" … (the log has the rest)"]}),o.length>0&&n("\
ul",{class:"files","aria-label":"Files",children:o.map((i,a)=>n("li",{class:"file",children:[i.preview&&n("img",{src:i.preview,alt:""}),n("span",{children:i.name}),
" ",n("span",{class:"faint",children:j(i.size)})]},a))}),s]})}function De({said:e,me:t}){return n(h,{children:e.map(({message:o,spoken:r})=>n("div",{class:"turn",
children:[o?n(Xe,{text:o.text}):r.command&&n(Xe,{text:"/"+r.command}),r.operator?n(ra,{spoken:r,me:t}):n(h,{children:[n("div",{class:"spoken",children:n(ue,{text:r.
text})}),n(Ze,{of:r.turn||r.id,me:t})]})]},r.id))})}function ra({spoken:{id:e,text:t,operator:o},me:r}){return n("div",{class:"said operator",children:[n("div",
{class:"said-name",children:["Operator",o?.name&&` (${o.name})`]}),n(ue,{text:t}),o?.cut&&n("div",{class:"faint",children:"… (the log has the rest)"}),n(Ze,{of:e,
me:r})]})}function sa({turn:e,told:t,me:o}){let r=ia(e),s=e.error&&!t&&e.state==="failed"?e.error.message:"";return!r&&!e.usage&&e.compacted===0&&!o.may.admin?null:
n("div",{class:"standing "+e.state,children:[r&&n("span",{class:_n(e)?"":"pulse",children:r}),s&&n("span",{children:s}),e.compacted>0&&n("span",{title:"The mode\
l now sees a summary in place of earlier messages",children:"summarized earlier messages"}),e.usage&&n(aa,{usage:e.usage}),o.may.admin&&n(V,{of:e.id})]})}function ia(e){
switch(e.state){case"done":return"";case"failed":return"Failed";case"cancelled":return"Stopped";case"parked":return"Waiting for an answer"}let t=e.retry;if(!t)return"\
Working…";let o=t.to?` ${t.to}`:"",r=t.after_ms>=1e3?` in ${Math.round(t.after_ms/1e3)} s`:"";return t.to&&t.from&&t.to!==t.from?`${t.from} didn't answer. Try\
ing${o}${r}…`:`Asking the model again${r} (attempt ${t.attempt})…`}function aa({usage:e}){let t=e.priced?` · ${ee(e.microdollars)}`:"";return n("span",{title:`${e.
model}: ${X(e.calls,"model call")}`,children:[P(e.input)," tokens in · ",P(e.output)," out",t]})}function fr({me:e,session:t,title:o,begun:r,onActivity:s}){let[,i]=f(0),[a,l]=f(null),[c,d]=f(!1);E(()=>{let p=new Ct(t,()=>i(k=>k+1),e.may.approve||e.may.agent||
e.may.own,e.may.read||e.may.own,r);return l(p),()=>p.close()},[t]);let u=a?.log.running(),v=a?.log.turns.map(p=>p.id+p.state).join();E(s,[v]);let g=Ao(t,e),m=!g&&
Jo(t,e);return n("section",{class:"conversation","aria-label":"Conversation",children:[n(ua,{session:t,title:o,own:g,talk:a,running:u!==void 0,files:c,setFiles:d}),
c&&n(Fo,{session:t,close:()=>d(!1)}),n(ma,{mark:a?.messages.length??0,children:[n(M,{error:a?.away||a?.problem}),a&&!a.log.ready&&!a.away&&n(se,{}),a?.log.ready&&
a.log.turns.length===0&&a.log.spoken.length===0&&a.messages.length===0&&n(re,{children:"No messages yet."}),a?.log.ready&&n(ca,{talk:a,me:e}),a&&n(la,{talk:a,me:e})]}),
a&&g&&n(gt,{session:t,running:u!==void 0,onSay:(p,k)=>a.say(p,k),onStop:()=>a.say("/stop",[])},t),a&&m&&n(Bo,{session:t,channel:ae(t).channel,onSay:p=>a.sayAsOperator(
p)},t),!g&&!m&&n("p",{class:"reading",children:["This conversation",ae(t).channel&&` on ${ae(t).channel}`," is read-only. Start a new chat to talk to the agent."]}),
n("p",{class:"away",role:"status",children:u?"The agent is working":"The agent is done"})]})}function la({talk:e,me:t}){let{turns:o}=e.log,r=[...e.log.asks.values()],
s=Ho(e.log),i=new Set(o.map(l=>l.id)),a=e.aside(s,i);return n(h,{children:[n(De,{said:a.filter(l=>!i.has(l.spoken.after)),me:t}),o.map(l=>n(h,{children:[n(Ee,{turn:l,
version:l.version,sent:e.sentOf(l),said:s.filter(c=>c.turn===l.id),asks:r.filter(c=>c.turn===l.id),beside:e.log.besideOf(l.id),readJob:e.readJob,me:t}),n(De,{said:a.
filter(c=>c.spoken.after===l.id),me:t})]},l.id)),e.pending().map(l=>n(da,{message:l,talk:e,me:t},l.key))]})}function ca({talk:e,me:t}){let[o,r]=f(null);return n(
h,{children:[e.mayHaveEarlier()&&n("div",{class:"earlier",children:n(w,{look:"quiet",onPress:()=>e.readEarlier(),onError:r,children:"Show earlier messages"})}),
n(M,{error:o}),e.earlier.map(s=>n(Sn,{part:s,talk:e,besides:e.log.besides,me:t},s[0]?.id))]})}var Sn=class extends te{shouldComponentUpdate(t){return t.part!==this.
props.part||t.besides!==this.props.besides}render(){let{part:t,talk:o,me:r}=this.props;return n("div",{class:"earlier-part",children:t.map(s=>"blocks"in s?n(Ee,
{turn:s,version:s.version,sent:[],said:[],asks:s.asks??[],beside:o.log.besideOf(s.id),readJob:o.readJob,me:r},s.id):n(De,{said:[{spoken:s}],me:r},s.id))})}};function da({
message:e,talk:t,me:o}){return n("div",{class:"pending "+e.state+(e.operator?" operator":""),children:n(Xe,{text:e.text,name:e.operator?"Operator":"",files:e.files,
children:e.state==="refused"?n("div",{class:"refused",role:"alert",children:[n("span",{children:["Not sent: ",e.problem]}),n(w,{onPress:()=>{t.send(e)},children:"\
Send again"}),n(w,{look:"quiet",onPress:()=>t.drop(e),children:"Discard"})]}):n(h,{children:[n("div",{class:"faint",children:e.state!=="sent"?"Sending…":e.operator?
"On its way.":"Sent. Waiting for the agent."}),n(Ze,{of:e.id,me:o})]})})})}function ua({session:e,title:t,own:o,talk:r,running:s,files:i,setFiles:a}){let[l,c]=f(
""),{agent:d,channel:u}=ae(e);return n("div",{class:"head",children:[n("a",{class:"back",href:L("chat"),"aria-label":"All sessions",children:"‹"}),n("div",{class:"\
head-title",children:[n("h1",{children:t||we(e)}),n("div",{class:"faint",children:[d," · ",u,r&&!r.live&&r.log.ready&&!r.away&&n("span",{class:"badge warn",children:"\
 reconnecting…"})]})]}),n(w,{look:"quiet",onPress:()=>a(!i),label:i?"Hide files":"Show files",children:"Files"}),o&&r&&n(bo,{label:"Commands",children:[n(w,{look:"\
quiet",onPress:()=>c("/new"),children:"Start over…"}),n(w,{look:"quiet",disabled:s,onPress:()=>c("/undo"),children:"Undo the last changes…"}),n(w,{look:"qui\
et",disabled:s,onPress:()=>r.say("/compact",[]),children:"Summarize the conversation"})]}),l==="/new"&&n(fe,{title:"Start over?",confirm:"Start over",onConfirm:()=>r?.
say("/new",[]),onClose:()=>c(""),children:"The agent forgets everything said in this session so far. You can still read it."}),l==="/undo"&&n(fe,{title:"Undo th\
e last changes?",confirm:"Undo",danger:!0,onConfirm:()=>r?.say("/undo",[]),onClose:()=>c(""),children:"This restores the session's files to how they were before\
 the last turn that changed any."})]})}function ma({children:e,mark:t}){let o=A(null),r=A(!0),[s,i]=f(!1),a=()=>{let c=o.current;c&&(c.scrollTop=c.scrollHeight)};
return E(()=>{r.current=!0,a()},[t]),pe(()=>{r.current&&a()}),n("div",{class:"scroll-frame",children:[n("div",{ref:o,class:"scroll",onScroll:()=>{let c=o.current;
c&&(r.current=c.scrollHeight-c.scrollTop-c.clientHeight<60,i(!r.current))},tabIndex:0,role:"log","aria-label":"Messages","aria-live":"off",children:n("div",{class:"\
column",children:e})}),s&&n("button",{type:"button",class:"button newest",onClick:()=>{r.current=!0,a()},children:"Latest ↓"})]})}var pa=500,fa=4e3,Tn=e=>"seen "+e.name;function ga(e){try{return JSON.parse(localStorage.getItem(Tn(e))??"")}catch{return}}function ha(e,t){let o=Object.entries(
t.looks),s=o.splice(0,Math.max(0,o.length-pa)).reduce((i,[,a])=>Math.max(i,a.at),t.since);try{localStorage.setItem(Tn(e),JSON.stringify({since:s,looks:Object.fromEntries(
o)}))}catch{}}var xn=e=>Date.parse(e.updated)||0;function ba(e,t){let o=e.looks[t.key],r=o?.at??e.since;return o?.entries!==t.entries&&xn(t)>r}function gr(e,t,o){
let[r,s]=f(new Set),[i,a]=f(0),l=A({key:"",until:0});return E(()=>{let c=d=>d.key===Tn(e)&&a(u=>u+1);return addEventListener("storage",c),()=>removeEventListener(
"storage",c)},[]),E(()=>()=>{l.current={key:o,until:Date.now()+fa}},[o]),E(()=>{if(!t)return;let c=ga(e),d=c??{since:t.reduce((g,m)=>Math.max(g,xn(m)),0),looks:{}},
u=g=>g===o&&!document.hidden||g===l.current.key&&Date.now()<l.current.until,v=t.filter(g=>u(g.key)&&d.looks[g.key]?.entries!==g.entries);for(let g of v)delete d.
looks[g.key],d.looks[g.key]={entries:g.entries,at:xn(g)};(!c||v.length>0)&&ha(e,d),s(new Set(t.filter(g=>ba(d,g)).map(g=>g.key)))},[t,o,i]),r}var Rt=60;function hr({me:e,session:t,title:o,at:r}){let[s,i]=f(null),[a,l]=f(null),c=A(new AbortController),d=async(m,p)=>{let{entries:k,last:_}=await gn(t,m-1,
p,c.current.signal);return{entries:k,from:m,to:p,last:_}},u=()=>{l(null),d(Math.max(1,r-Rt),r+Rt).then(i,m=>c.current.signal.aborted||l(m))};E(()=>(u(),()=>c.current.
abort()),[]);let v=async m=>{let p=await d(Math.max(1,m.from-Rt),m.from-1);i({...m,entries:[...p.entries,...m.entries],from:p.from})},g=async m=>{let p=await d(
m.to+1,m.to+Rt);i({...m,entries:[...m.entries,...p.entries],to:p.to,last:p.last})};return n("section",{class:"conversation","aria-label":"Conversation",children:[
n("div",{class:"head",children:[n("a",{class:"back",href:L("chat"),"aria-label":"All sessions",children:"‹"}),n("div",{class:"head-title",children:[n("h1",{children:o||
we(t)}),n("div",{class:"faint",children:"An earlier part of the conversation"})]}),n("a",{class:"button",href:L("chat",t),children:"Latest messages"})]}),n("div",
{class:"scroll-frame",children:n("div",{class:"scroll",tabIndex:0,role:"log","aria-label":"Messages","aria-live":"off",children:n("div",{class:"column",children:[
n(M,{error:a,again:u}),!s&&!a&&n(se,{}),s&&s.from>1&&n("div",{class:"earlier",children:n(w,{look:"quiet",onPress:()=>v(s),onError:l,children:"Show earlier messa\
ges"})}),s&&n(va,{entries:s.entries,session:t,at:r,me:e}),s&&!s.last&&n("div",{class:"earlier",children:n(w,{look:"quiet",onPress:()=>g(s),onError:l,children:"S\
how later messages"})})]})})})]})}function va({entries:e,session:t,at:o,me:r}){let s=A(null),i=hn(e,t,!0);return pe(()=>{let a=[...s.current?.querySelectorAll("\
[data-n]")??[]],l=a.findLast(c=>Number(c.dataset.n)<=o)??a[0];l&&(l.classList.add("sought"),l.tabIndex=-1,l.focus({preventScroll:!0}),l.scrollIntoView({block:"c\
enter"}))},[]),n("div",{ref:s,class:"past",children:[i.length===0&&n(re,{children:"These messages have been erased."}),i.map(a=>"blocks"in a?n(Ee,{turn:a,version:a.
blocks.length,sent:[],said:[],asks:a.asks??[],beside:[],readJob:()=>{},me:r,numbered:!0},a.id):n(De,{said:[{spoken:a}],me:r},a.id))]})}var wa=2,ya=300;function br(e){return e.trim().length>=wa}function vr({words:e,shown:t}){let[o,r]=f("");return E(()=>{let s=setTimeout(()=>r(e),ya);return()=>clearTimeout(
s)},[e]),n("section",{class:"found","aria-label":"Messages",children:[n("h2",{children:"What was said"}),o?n(ka,{words:o,stale:o!==e,shown:t}):n(se,{})]})}function ka({
words:e,stale:t,shown:o}){let{value:r,error:s,again:i}=B(l=>y(["search"],{q:e,limit:20},l).then(({hits:c})=>({words:e,hits:c})),e),a=!t&&r?.words===e;return n("\
div",{"aria-busy":!a&&!s,children:[n(M,{error:!t&&s,again:i}),!r&&!s&&n(se,{}),a&&r.hits.length===0&&n(re,{children:"No messages found with these words."}),n("u\
l",{children:r?.hits.map(l=>n(_a,{hit:l,current:`${l.session} ${l.n}`===o},`${l.session} ${l.n}`))})]})}function _a({hit:e,current:t}){return n("li",{children:[
n("a",{href:L("chat",e.session,String(e.n)),"aria-current":t?"page":void 0,children:[n("span",{class:"passage",children:e.text}),e.untrusted&&n("span",{class:"b\
adge warn",children:"strangers may have written it"}),n("span",{class:"line faint",children:[n("span",{class:"line-title",children:[Sa(e)," · ",e.title||we(e.session)]}),
n(T,{at:e.at})]})]}),e.link&&ir(e.link)&&n("a",{class:"there",href:e.link,target:"_blank",rel:"noopener noreferrer","aria-label":`Open where it was said: ${e.text.
slice(0,60)}`,children:"Open where it was said"})]})}function Sa(e){return e.kind==="text"?"agent":e.kind==="summary"?"summary":e.tool||e.name||e.person||e.kind}var xa=3e4;function wr(e){let[t,o]=f({running:new Set,waiting:new Set}),r=A(()=>{});return _t(["turn_start","parked","turn_complete","turn_error","ask","ask_res\
olved"],()=>r.current()),E(()=>{let s=new AbortController,i=!1,a=!1;r.current=()=>{s.signal.aborted||(a=i,!i&&(i=!0,Ta(e,s.signal).then(o,c=>s.signal.aborted||o(
d=>({...d,error:Je(c)}))).finally(()=>{i=!1,a&&r.current()})))},r.current();let l=setInterval(()=>!document.hidden&&r.current(),xa);return()=>{s.abort(),clearInterval(
l)}},[]),{...t,again:()=>r.current()}}async function Ta(e,t){let o=y(["sessions"],{order:"desc",limit:200},t),r=e.may.read?y(["status"],{},t):Promise.resolve(void 0),
[{sessions:s},i]=await Promise.all([o,r]);return{sessions:s,running:new Set(i?.turns?.list.map(a=>a.session)),waiting:new Set(i?.asks?.list.map(a=>a.session))}}
function yr({known:e,unread:t,shown:o,at:r}){let[s,i]=f(""),{sessions:a,error:l}=e,c=s.trim().toLowerCase(),d=a?.filter(u=>!c||`${u.title??""} ${u.key}`.toLowerCase().
includes(c));return n("nav",{class:"sessions","aria-label":"Sessions",children:[n("div",{class:"sessions-top",children:[n("input",{type:"search","aria-label":"F\
ilter sessions and search messages",placeholder:"Search",value:s,onInput:u=>i(u.currentTarget.value)}),n("a",{class:"button main",href:L("chat"),"aria-current":o===
""?"page":void 0,children:"New chat"})]}),n(M,{error:l}),!a&&!l&&n(se,{}),d?.length===0&&n(re,{children:c?"No matching sessions.":"No conversations yet."}),n("u\
l",{children:d?.map(u=>n(Ea,{session:u,current:u.key===o,known:e,unread:t.has(u.key)},u.key))}),br(s)&&n(vr,{words:s.trim(),shown:r>0?`${o} ${r}`:""})]})}function Ea({
session:e,current:t,known:o,unread:r}){let{agent:s,channel:i}=ae(e.key),a=o.waiting.has(e.key),l=!a&&o.running.has(e.key);return n("li",{children:n("a",{href:L(
"chat",e.key),"aria-current":t?"page":void 0,children:[n("span",{class:"line",children:[r&&n("span",{class:"unread",role:"img","aria-label":"new"}),n("span",{class:"\
line-title"+(r?" strong":""),children:e.title||we(e.key)}),a&&n("span",{class:"badge warn",children:"waiting"}),l&&n("span",{class:"dot",role:"img","aria-label":"\
working"})]}),n("span",{class:"line faint",children:[n("span",{children:[i,s!=="main"&&` · ${s}`]}),n(T,{at:e.updated})]})]})})}function kr({me:e,rest:t}){let o=t[0]??"",r=Number(t[1])||0,s=wr(e),i=gr(e,s.sessions,o),a=A(new Map),l=s.sessions?.find(d=>d.key===o)?.title??"",c=(d,u)=>{let v=To(
e);a.current.set(v,[je(v,d,u)]),Me("chat",v)};return n("div",{class:"chat "+(o?"one":"all"),children:[n(yr,{known:s,unread:i,shown:o,at:r}),o&&r>0?n(hr,{me:e,session:o,
title:l,at:r},o+" "+r):o?n(fr,{me:e,session:o,title:l,begun:a.current.get(o)??[],onActivity:s.again},o):n(Pa,{mayTalk:e.may.agent,onSay:c})]})}function Pa({mayTalk:e,
onSay:t}){return e?n("section",{class:"conversation beginning","aria-label":"New chat",children:[n("div",{class:"hello",children:[n("h1",{children:"What can the\
 agent do for you?"}),n("p",{class:"faint",children:"Your first message starts a new session. Press Enter to send, Shift+Enter for a new line."})]}),n(gt,{session:"",
running:!1,onSay:t,onStop:()=>{}})]}):n("section",{class:"conversation",children:n("p",{class:"empty",children:"Select a session to read it."})})}var Ca={builtin:"built in",mcp:"MCP server",skill:"skill"},_r=160;function Sr({me:e}){let o=B(r=>y(["status"],{brief:!0},r),"").value?.role!=="gateway";return n(
O,{title:"Agents",about:"What the bot has: its agents, their tools and skills, and where they may send messages.",children:[!o&&n("p",{class:"note",children:"Th\
is page comes from a gateway, which runs no turns: it doesn't know which tools work where turns run, and lists no skills."}),n(Aa,{works:o}),n(Ja,{}),e.may.admin&&
n("p",{class:"aside",children:["To accept new tools of MCP servers, see ",n("a",{href:L("mcp"),children:"MCP servers"}),"."]}),e.may.admin&&o&&n(Ma,{}),n(Ba,{})]})}
function Aa({works:e}){let t=B(o=>y(["agents"],{},o),"");return n(K,{read:t,rows:o=>o.agents,label:"Agents",id:o=>o.name,empty:"There are no agents.",columns:[{
title:"Agent",cell:o=>n(h,{children:[n("strong",{children:n(S,{of:o.name})})," ",e&&!o.answers&&n(J,{look:"bad",children:"no model"})]})},{title:"Models",cell:o=>n(
$e,{of:o.models.map(r=>r.name??r.setting)})},{title:"Capabilities",cell:o=>o.capabilities.length>0?o.capabilities.join(", "):"none"},{title:"Tools",cell:o=>P(o.
tools.length),number:!0},{title:"May message",cell:o=>n($e,{of:o.may_message})},{title:"Cap per day",cell:o=>o.microdollars_day?ee(o.microdollars_day):"none",number:!0}]})}
function $e({of:e}){return e.length>0?n(S,{of:e.join(", ")}):n(h,{children:"none"})}function Ja(){let[e,t]=f(""),o=B(r=>y(["tools"],{},r),"");return n(N,{title:"\
Tools",wide:!0,children:[n(bt,{label:"Find tools",value:e,set:t}),n(K,{read:o,rows:r=>r.tools.filter(s=>vt(e,s.name,s.description,s.permission??"",...s.agents)),
label:"Tools that agents have; calls are those in this process since it started",id:r=>r.name,empty:e?"No matching tools.":"No agent has any tools.",columns:[{title:"\
Tool",cell:r=>n(h,{children:[n("code",{children:b(r.name)}),n("br",{}),n("span",{class:"aside",children:Ca[r.origin]??r.origin})]})},{title:"Needs",cell:r=>r.permission??
"nothing"},{title:"Agents",cell:r=>n($e,{of:r.agents})},{title:"Calls",cell:r=>P(r.calls),number:!0},{title:"Failed",cell:r=>P(r.failed),number:!0},{title:"Desc\
ription",cell:r=>n(xr,{of:r.description})}]})]})}function xr({of:e}){let t=b(e);return t.length<=_r?n("span",{class:"saying",children:t}):n("details",{children:[
n("summary",{children:[t.slice(0,_r),"…"]}),n("span",{class:"saying",children:t})]})}function Ma(){let e=B(t=>y(["skills"],{},t),"");return n(N,{title:"Skills",
wide:!0,children:n(K,{read:e,rows:t=>t.skills,label:"Your skills",id:t=>t.name,empty:"You have no skills. See docs/skills.md to add one.",columns:[{title:"Skill",
cell:t=>n(h,{children:[n("strong",{children:n(S,{of:t.name})})," ",t.trusted&&n(J,{look:"good",children:"trusted"})]})},{title:"Agents",cell:t=>n($e,{of:t.agents})},
{title:"Tools",cell:t=>n($e,{of:t.tools})},{title:"Folder",cell:t=>n("code",{class:"name",children:b(t.folder)})},{title:"Description",cell:t=>n(xr,{of:t.description})}]})})}
function Ba(){let e=B(t=>y(["targets"],{},t),"");return n(N,{title:"Targets",wide:!0,children:n(K,{read:e,rows:t=>t.targets,label:"Targets of messages",id:t=>t.
name,empty:"No targets are configured. A target is a name for one or more addresses.",columns:[{title:"Target",cell:t=>n("strong",{children:n(S,{of:t.name})})},
{title:"Addresses",cell:t=>n($e,{of:t.to})}]})})}function Tr({decided:e}){let t=B(o=>y(["audit"],{kind:"approval",order:"desc",limit:20},o),String(e));return n(N,{title:"Recent decisions",wide:!0,children:n(K,
{read:t,rows:o=>o.records,label:"Decisions made on this page and by programs, newest first",id:o=>String(o.id),empty:"No decisions here yet. For decisions that \
people made in chats, see the tool calls in the audit.",columns:[{title:"When",cell:o=>n(T,{at:o.at})},{title:"Who",cell:o=>n(S,{of:o.by})},{title:"Decision",cell:o=>n(
J,{look:o.result==="denied"?"bad":"good",children:b(o.result)})},{title:"What",cell:o=>n(h,{children:[o.tool&&n("code",{children:b(o.tool)})," ",n("span",{class:"\
aside",children:n(S,{of:o.detail})})]})},{title:"Session",cell:o=>n(q,{of:o.session})}]})})}var Oa=40;function Er({me:e,rest:t}){let o=t[0]??"",r=Z(),[s,i]=f(0),a=I(d=>y(["asks"],{},d),"",20,["ask","ask_resolved"]),l=a.value?.asks,c=d=>{r.say(La(d)),i(
u=>u+1),a.again()};return n(O,{title:"Approvals",done:r,about:"What turns are waiting for. Nothing runs until someone decides. Opening a link to a request never\
 decides it.",children:[n(D,{...a}),l&&o&&!l.some(d=>d.id===o)&&n("p",{class:"note",children:["The request ",n("code",{children:b(o)})," isn't open. Someone dec\
ided it, it expired, or you can't see it."]}),l?.length===0&&n(re,{children:"No open requests. When a tool call needs approval or the agent has a question, you'\
ll see it here."}),l?.map(d=>n(Xa,{ask:d,me:e,named:d.id===o,done:c},d.id)),e.may.admin&&n(Tr,{decided:s})]})}function La(e){if(e.kind==="question")return"Answe\
r sent. The agent continues now.";let t=b(e.tool??"the call");return e.answer==="deny"?`You denied ${t}. The agent continues without it.`:`You approved ${t}${e.
answer==="session"?" for this session":""}. It's running now.`}function Xa({ask:e,me:t,named:o,done:r}){let s=A(null);E(()=>{o&&(s.current?.scrollIntoView({block:"\
start"}),s.current?.focus({preventScroll:!0}))},[o]);let i="request-"+e.id;return n("article",{ref:s,class:"request"+(o?" named":""),"aria-labelledby":i,tabIndex:-1,
children:[n("h2",{id:i,children:n(Mt,{ask:e})}),n("p",{class:"aside",children:["For ",n(S,{of:e.person})," in ",n(q,{of:e.session}),"; asked ",n(T,{at:e.at}),",\
 expires ",n(T,{at:e.expires})," ",t.may.admin&&n(V,{of:e.turn})]}),e.to&&e.to.length>0&&n("p",{class:"aside",children:["Also asked in ",e.to.map(b).join(", "),
"."]}),n(Bt,{ask:e,me:t,most:Oa,onDone:r})]})}var Da=["turn","refusal","tool","pairing","export","replay","forget","job","approval","schedule","operator","memory","sign_in"];function Pr({rest:e}){let[t,o]=f(
{kind:"",session:e[0]??"",person:""}),[r,s]=f([]),i=r.at(-1),a=B(c=>y(["audit"],{...t,order:"desc",limit:50,after:i},c),JSON.stringify([t,i]));return n(O,{title:"\
Audit",about:"What happened, newest first.",children:[n($a,{filter:t,choose:c=>{o(c),s([])},refresh:a.again}),n(D,{...a}),a.value&&n(Na,{records:a.value.records}),
a.value&&n("div",{class:"after",children:[r.length>0&&n(w,{onPress:()=>s(r.slice(0,-1)),children:"Newer"}),a.value.next!==void 0&&n(w,{onPress:()=>s([...r,a.value?.
next??0]),children:"Older"})]})]})}function $a({filter:e,choose:t,refresh:o}){let[r,s]=f(e.session),[i,a]=f(e.person),l=()=>{let c={...e,session:r.trim(),person:i.
trim()};JSON.stringify(c)===JSON.stringify(e)?o():t(c)};return n("form",{class:"filters",onSubmit:c=>{c.preventDefault(),l()},children:[n("label",{children:["Ki\
nd",n("select",{value:e.kind,onChange:c=>t({...e,kind:c.currentTarget.value}),children:[n("option",{value:"",children:"All"}),Da.map(c=>n("option",{value:c,children:c.
replace("_"," ")},c))]})]}),n("label",{children:["Session",n("input",{value:r,placeholder:"main:telegram:42",onInput:c=>s(c.currentTarget.value)})]}),n("label",
{children:["Person",n("input",{value:i,placeholder:"telegram:42",onInput:c=>a(c.currentTarget.value)})]}),n("button",{class:"button",type:"submit",children:"App\
ly"})]})}function Na({records:e}){return n(z,{label:"What happened, newest first",rows:e,id:t=>String(t.id),empty:"No matching records. The audit lists what age\
nts, people and programs did.",columns:[{title:"When",cell:t=>n(T,{at:t.at})},{title:"Kind",cell:t=>t.kind.replace("_"," ")},{title:"Who",cell:t=>n(S,{of:t.by})},
{title:"Where",cell:t=>t.session?n(q,{of:t.session}):n(S,{of:t.address})},{title:"Result",cell:t=>n(Fa,{of:t})},{title:"Details",cell:t=>n(Ua,{of:t})}]})}var Ra=new Set(
["ok","done","answered","admitted","replayed","signed in","read","erased","changed","offered","login","accepted","approved","approved for the session"]),Ia=new Set(
["failed","given_up","timeout","permission_denied","denied"]);function Fa({of:e}){let t=Ra.has(e.result)?"good":Ia.has(e.result)?"bad":void 0;return n(h,{children:[
n(J,{look:t,children:[b(e.result),e.exit_code!==void 0&&` (${e.exit_code})`]})," ",(e.kind==="tool"||e.kind==="turn"||e.kind==="job")&&n("span",{class:"aside",children:G(
e.elapsed_ms)})]})}function Ua({of:e}){let t=e.used?[Wa(e.used),e.detail].filter(Boolean).join("; "):e.kind==="refusal"?qa(e):e.detail,o=e.turn??e.messages?.at(
-1);return n(h,{children:[e.tool&&n("code",{children:b(e.tool)})," ",t&&n(S,{of:t})," ",o&&n(V,{of:o}),e.arguments!==void 0&&e.arguments!==null&&n("details",{children:[
n("summary",{children:"Arguments"}),n(yt,{of:e.arguments,label:"Arguments"})]})]})}function Wa(e){let t=[e.model,X(e.model_calls,"model call"),X(e.calls,"tool c\
all"),P(e.input)+" tokens in",P(e.output)+" out"];return e.microdollars!==void 0&&t.push(ee(e.microdollars)),t.filter(Boolean).join(", ")}function qa(e){return X(
e.count??e.messages?.length??1,"message")+(e.detail?"; "+e.detail:"")}function Cr({me:e}){let t=Z(),o=B(s=>y(["sign-ins"],{},s),""),r=oe(s=>({title:s.current?"Sign out here?":"Sign out this browser?",confirm:"Sign out browser",text:n(
h,{children:[It(s.device)," (",n(S,{of:s.caller}),") will need to sign in again. ",s.current&&"That's the browser you're using now."]}),act:async()=>{await Y(["\
sign-ins",s.id]),t.say(`You signed out ${It(s.device)} (${b(s.caller)}).`),o.again()}}));return n(O,{title:"Browsers",done:t,about:e.may.admin?"Browsers that ar\
e signed in to this page.":"Browsers that are signed in to this page with your token.",children:[n(K,{read:o,rows:s=>s.sign_ins,label:"Signed-in browsers, most \
recently used first",id:s=>s.id,empty:"No browsers are signed in.",columns:[{title:"Browser",cell:s=>n(h,{children:[n("span",{title:b(s.device),children:It(s.device)}),
" ",s.current&&n(J,{look:"good",children:"this browser"})]})},{title:"Who",cell:s=>n(S,{of:s.caller})},{title:"Signed in",cell:s=>n(T,{at:s.began})},{title:"Las\
t used",cell:s=>n(T,{at:s.seen})},{title:"Actions",cell:s=>n(w,{look:"danger",onPress:()=>r.ask(s),label:`Sign out ${It(s.device)} (${s.caller})`,children:"Sign\
 out…"})}]}),r.dialog]})}function It(e){let t=s=>s.find(([,i])=>i.test(e))?.[0],o=t([["Edge",/Edg/],["Opera",/OPR/],["Firefox",/Firefox|FxiOS/],["Chrome",/Chrome|CriOS/],
["Safari",/Safari/]]),r=t([["Android",/Android/],["iPhone",/iPhone/],["iPad",/iPad/],["Windows",/Windows/],["macOS",/Mac OS X/],["Linux",/Linux/]]);return o?r?`${o}\
 on ${r}`:o:b(e)||"Unknown browser"}function Jr(){let[e,t]=f(""),[o,r]=f(!1),s=B(a=>y(["config"],{},a),""),i=a=>(!o||a.from!=="default")&&vt(e,a.key,Ar(a),a.from);return n(O,{title:"Configuration",
about:"The settings in force. To change one, edit the file and send SIGHUP to the server, or restart it.",children:[s.value&&n("p",{class:"aside",children:["Fil\
e: ",n(S,{of:s.value.file||"none"}),n("br",{}),"Home: ",n(S,{of:s.value.home})]}),s.value?.notices?.map(a=>n("p",{class:"note warn",children:b(a)},a)),n(bt,{label:"\
Find settings",value:e,set:t,children:n("label",{class:"choice",children:[n("input",{type:"checkbox",checked:o,onChange:a=>r(a.currentTarget.checked)})," Hide d\
efaults"]})}),n(K,{read:s,rows:a=>a.settings.filter(i),label:"Settings in force; secrets are ***",id:a=>a.key,empty:"No matching settings.",columns:[{title:"Set\
ting",cell:a=>n(h,{children:[n("code",{class:"name",children:b(a.key)})," ",a.no_effect&&n(J,{look:"warn",children:"no effect yet"})]})},{title:"Value",cell:a=>n(
"code",{class:"name",children:b(Ar(a))})},{title:"From",cell:a=>a.from==="default"?n("span",{class:"aside",children:"default"}):n(S,{of:a.from})}]})]})}function Ar(e){
return JSON.stringify(e.value)}var Ha=100;function Mr({me:e}){let t=Z(),[o,r]=f(""),[s,i]=f(""),[a,l]=f(null),c=I(p=>y(["dead-letters"],{topic:o,after:s,order:"desc",limit:Ha},p),o+" "+s,30,[
"dead_letter"]),d=za(e.may.read),u=p=>{r(p),i("")},v=p=>{t.say(p),l(null),c.again()},g=async p=>{let{id:k}=await W(["dead-letters",p.topic,p.id,"replay"]);v(`Re\
played as ${k}.`)},m=oe(p=>({title:"Forget this message?",confirm:"Forget it",text:n(h,{children:["This deletes the message ",n(S,{of:p.id})," for ",n(S,{of:p.key}),
". You can't undo it."]}),act:async()=>{await Y(["dead-letters",p.topic,p.id]),v(`Forgot the dead letter ${p.id}.`)}}));return n(O,{title:"Dead letters",done:t,
about:"Messages that couldn't be delivered or answered after several tries. Once you've fixed the cause, you can replay them.",children:[n(ja,{topics:d,chosen:o,
choose:u}),n(D,{...c}),c.value&&n(Va,{letters:c.value.letters,look:l,replay:g,drop:m.ask,fail:t.fail}),c.value&&n(Ka,{page:c.value,topic:o,after:s,go:i}),a&&n(Ya,
{of:a,close:()=>l(null)},a.topic+" "+a.id),m.dialog]})}function za(e){return(B(async o=>e?(await y(["status"],{brief:!0},o)).topics:[],"").value??[]).filter(o=>o.
dead>0)}function ja({topics:e,chosen:t,choose:o}){return e.length<2&&!t?null:n("div",{class:"filters",children:n("label",{children:["Topic",n("select",{value:t,
onChange:r=>o(r.currentTarget.value),children:[n("option",{value:"",children:"All"}),e.map(r=>n("option",{value:r.topic,children:[r.topic," (",P(r.dead),")"]},r.
topic))]})]})})}function Va({letters:e,look:t,replay:o,drop:r,fail:s}){return n(z,{label:"Dead letters, newest first within each topic",rows:e,id:i=>i.topic+" "+
i.id,empty:"No dead letters. Messages that can't be delivered or answered after several tries show up here.",columns:[{title:"Gave up",cell:i=>n(T,{at:i.buried_at})},
{title:"For",cell:i=>n(h,{children:[n(S,{of:i.key}),n("br",{}),n("span",{class:"aside",children:n(S,{of:i.topic})})]})},{title:"Reason",cell:i=>b(i.reason)},{title:"\
Attempts",cell:i=>P(i.attempts),number:!0},{title:"Size",cell:i=>j(i.bytes),number:!0},{title:"Message",cell:i=>n("div",{class:"rowactions",children:[n(w,{onPress:()=>t(
i),label:`View ${i.id}`,children:"View"}),n(w,{onPress:()=>o(i),onError:s,label:`Replay ${i.id}`,children:"Replay"}),n(w,{look:"danger",onPress:()=>r(i),label:`\
Forget ${i.id}`,children:"Forget…"})]})}]})}function Ka({page:e,topic:t,after:o,go:r}){return e.more&&!t?n("p",{class:"none after",children:"There are more. C\
hoose a topic to see them all."}):n(Oe,{after:o,next:e.next,go:r})}function Ya({of:e,close:t}){let o=B(r=>y(["dead-letters",e.topic,e.id],{},r),e.topic+" "+e.id);
return n(Be,{title:"Message",close:t,children:[n("p",{class:"aside",children:[n(S,{of:e.id})," ",n(V,{of:e.id})]}),n(D,{...o}),o.value&&n(yt,{of:o.value.message??
"This message isn't JSON, so it can't be shown.",label:"The message"})]})}var Ga=1e3;function Or(){let e=B(a=>y(["doctor"],{},a),""),t=e.value,[o,r]=f(!1),s=o||(t?.running??!1);E(()=>{if(r(!1),!t?.running)return;let a=setTimeout(e.again,
Ga);return()=>clearTimeout(a)},[t,e.error]);let i=()=>{r(!0),e.again()};return n(O,{title:"Doctor",about:"What the server finds when it checks its settings, its\
 data, the model and the platforms, as parley doctor does. This takes a few seconds, and asks the model something.",children:[n("div",{class:"filters",children:n(
Za,{checkup:t,running:s,again:i})}),n(M,{error:e.error,again:i}),n("p",{class:"aside",children:[n("span",{role:"status",children:s||!t&&!e.error?"Checking…":t&&
Qa(t.findings)})," ",t?.at&&n(h,{children:["Checked ",n(T,{at:t.at}),", in ",G(t.took_ms),"."]})]}),t?.at&&n(tl,{of:t.findings})]})}function Za({checkup:e,running:t,
again:o}){let[,r]=f(0),s=e?.again?Math.max(0,new Date(e.again).getTime()-Date.now()):0;return E(()=>{if(s===0)return;let i=setTimeout(()=>r(a=>a+1),Math.min(s,1e3));
return()=>clearTimeout(i)}),n(h,{children:[n(w,{look:"main",disabled:!e||t||s>0,onPress:o,children:"Check again"}),s>0&&!t&&n("span",{class:"aside",children:["i\
n ",G(Math.ceil(s/1e3)*1e3)]})]})}function Qa(e){let t=e.filter(o=>o.state==="wrong").length;return t>0?X(t,"thing")+(t===1?" needs":" need")+" a change.":"Ever\
ything works."}var el={wrong:"bad",note:"warn",ok:"good"},Br=["wrong","note","ok"];function tl({of:e}){let t=e.map((o,r)=>({...o,n:r})).sort((o,r)=>Br.indexOf(o.
state)-Br.indexOf(r.state)||o.n-r.n);return n(z,{label:"What was checked, problems first",rows:t,id:o=>String(o.n),empty:"Nothing was checked.",columns:[{title:"\
Part",cell:o=>n("strong",{class:"name part",children:b(o.part)})},{title:"State",cell:o=>n(J,{look:el[o.state],children:o.state})},{title:"Finding",cell:o=>n("s\
pan",{class:"name",children:b(o.detail)})},{title:"What to do",cell:o=>o.remedy&&n("span",{class:"name",children:b(o.remedy)})}]})}var nl=100,ol={ok:"good",failed:"bad",unknown:"bad"};function Lr({me:e,rest:t}){let o=Z(),[r,s]=f(t[0]??""),[i,a]=f(null),l=I(d=>y(["jobs"],{session:r,limit:nl},
d),r,15,["job"]),c=oe(d=>({title:"Stop this job?",confirm:"Stop job",text:n(Lt,{of:d,session:d.session}),act:async()=>{await Y(["jobs",d.id]),o.say(`Asked ${d.id}\
 to stop.`),l.again()}}));return n(O,{title:"Jobs",done:o,about:"Commands that agents run in the background, and those that ended in the last 30 days.",children:[
n(rl,{session:r,choose:s}),n(D,{...l}),l.value&&n(sl,{jobs:l.value.jobs,look:a,stop:e.may.admin?c.ask:void 0}),l.value?.more&&n("p",{class:"none after",children:"\
There are more. Choose a session to see its jobs."}),i&&n(al,{of:i,close:()=>a(null)},i.id),c.dialog]})}function rl({session:e,choose:t}){let[o,r]=f(e);return n(
"form",{class:"filters",onSubmit:s=>{s.preventDefault(),t(o.trim())},children:[n("label",{class:"long",children:["Session",n("input",{value:o,placeholder:"main:\
telegram:42",spellcheck:!1,onInput:s=>r(s.currentTarget.value)})]}),n("button",{class:"button",type:"submit",children:"Apply"})]})}function sl({jobs:e,look:t,stop:o}){
return n(z,{label:"Jobs, those that run first, then newest first",rows:e,id:r=>r.id,empty:"No jobs. A command that an agent runs in the background shows up here\
.",columns:[{title:"State",cell:r=>n(il,{of:r})},{title:"Command",cell:r=>n("code",{class:"name",children:b(r.command)})},{title:"For",cell:r=>n(h,{children:[n(
S,{of:r.person}),n("br",{}),n(q,{of:r.session})]})},{title:"Started",cell:r=>n(T,{at:r.started})},{title:"Printed",cell:r=>j(r.printed),number:!0},{title:"Actio\
ns",cell:r=>n("div",{class:"rowactions",children:[n(w,{onPress:()=>t(r),label:`Output of ${r.id}`,children:"Output"}),o&&r.state==="running"&&!r.stopping&&n(w,{
look:"danger",onPress:()=>o(r),label:`Stop ${r.id}`,children:"Stop…"})]})}]})}function il({of:e}){let[t,o]=Ot(e);return n(h,{children:[n(J,{look:ol[t],children:o}),
n("br",{}),e.state==="running"&&n("span",{class:"aside",children:["for ",n(de,{at:e.started}),"; times out ",n(T,{at:e.deadline})]}),e.ended&&n("span",{class:"a\
side",children:n(T,{at:e.ended})}),e.detail&&n("span",{class:"aside",children:[n("br",{}),b(e.detail)]})]})}function al({of:e,close:t}){let o=I(s=>y(["jobs",e.id],
{},s),e.id,5,["job","job_output"]),r=o.value?.output??"";return n(Be,{title:"Output",close:t,children:[n("p",{class:"aside",children:n("code",{class:"name",children:b(
e.command)})}),n(D,{...o}),o.value&&!r&&n("p",{class:"none",children:["It printed nothing",o.value.state==="running"&&" yet","."]}),o.value&&r&&n(Ke,{of:r,label:`\
Output of ${e.id}`,above:`Printed ${j(o.value.printed)}; this is the end`})]})}function Xr(e,t){let o=e===void 0?[]:e.split(`
`),r=t.split(`
`),s=0;for(;s<o.length&&s<r.length&&o[s]===r[s];)s++;let i=0;for(;i<o.length-s&&i<r.length-s&&o.at(-1-i)===r.at(-1-i);)i++;let a=l=>({mark:" ",text:l});return[...r.
slice(0,s).map(a),...ll(o.slice(s,o.length-i),r.slice(s,r.length-i)),...r.slice(r.length-i).map(a)]}function ll(e,t){let o=l=>({mark:"-",text:l}),r=l=>({mark:"+",
text:l});if(e.length===0||t.length===0||e.length*t.length>4e6)return[...e.map(o),...t.map(r)];let s=Array.from({length:e.length+1},()=>new Uint32Array(t.length+
1)),i=(l,c)=>s[l]?.[c]??0;for(let l=e.length-1;l>=0;l--){let c=s[l];if(c)for(let d=t.length-1;d>=0;d--)c[d]=e[l]===t[d]?i(l+1,d+1)+1:Math.max(i(l+1,d),i(l,d+1))}
let a=[];for(let l=0,c=0;l<e.length||c<t.length;){let[d,u]=[e[l],t[c]];d!==void 0&&d===u?(a.push({mark:" ",text:d}),l++,c++):d!==void 0&&(u===void 0||i(l+1,c)>=
i(l,c+1))?(a.push(o(d)),l++):u!==void 0&&(a.push(r(u)),c++)}return a}function Pn(e,t){return W(["mcp",e,"accept"],{tool:t.name,digest:t.digest})}function Dr({server:e,tool:t,changed:o,renew:r,outcome:s,done:i}){let a=b(t.name),l=async()=>{
await Pn(e,t),s.say(`Accepted ${a}.`),i()};return n("section",{class:"request","aria-label":`${t.was?"Changed":"New"} tool ${a} of ${e}`,children:[n("div",{class:"\
between",children:[n("strong",{children:n("code",{children:a})}),n(J,{look:"warn",children:t.was?"changed":"new"})]}),n(Ft,{title:"Description",of:`${a} of ${e}`,
before:t.was?.description,now:t.description,isNew:!t.was}),n(Ft,{title:"Arguments",of:`${a} of ${e}`,before:t.was&&En(t.was),now:En(t),isNew:!t.was}),o?n("p",{class:"\
note warn",children:["The tool changed again while you were looking. ",n(w,{onPress:r,label:`Show ${a} again`,children:"Show it again"})]}):n(w,{look:"main",onPress:l,
onError:s.fail,label:`Accept ${a}`,children:"Accept"})]})}function En(e){return JSON.stringify(e.schema,null,2)}function Ft({title:e,of:t,before:o,now:r,isNew:s}){
let i={" ":"","+":"plus","-":"minus"},a=Xr(o===void 0?void 0:b(o),b(r)),l=a.some(c=>c.mark!==" ");return n("div",{class:"preview",children:[n("h3",{children:[e,
!s&&!l&&" (unchanged)"]}),n("pre",{tabIndex:0,role:"region","aria-label":`${e}: ${t}`,children:a.map((c,d)=>n("span",{class:"preview-line "+(s?"":i[c.mark]),children:(s?
"":c.mark+" ")+c.text+`
`},d))})]})}function $r({server:e,tools:t}){return n("ul",{class:"items",children:t.map(o=>n("li",{children:n("details",{children:[n("summary",{children:n("code",
{children:n(S,{of:o.name})})}),n(Ft,{title:"Description",of:`${b(o.name)} of ${e}`,now:o.description,isNew:!0}),n(Ft,{title:"Arguments",of:`${b(o.name)} of ${e}`,
now:En(o),isNew:!0})]})},o.name))})}var cl=2e3;function Nr({server:e,done:t}){let[o,r]=f(null),[s,i]=f(null),a=async()=>{i(null),r(await W(["mcp",e,"login"]))},l=()=>{r(null),t()};return E(()=>{if(!o)
return;let c=new AbortController,d=async()=>{if(!document.hidden)try{(await y(["mcp",e,"login"],{id:o.id},c.signal)).done?l():Date.now()>Date.parse(o.until)&&(r(
null),i(new Error("The link has expired. Sign in again.")))}catch(v){c.signal.aborted||i(v)}},u=setInterval(()=>{d()},cl);return()=>{c.abort(),clearInterval(u)}},
[o]),n(h,{children:[n(M,{error:s}),o?n(dl,{begun:o,server:e,done:l}):n(w,{onPress:a,onError:i,label:`Sign in to ${e}`,children:"Sign in…"})]})}function dl({begun:e,
server:t,done:o}){let[r,s]=f(""),[i,a]=f(null),l=ce(),c=async()=>{await W(["mcp",t,"login"],{address:r.trim()}),o()},d=/^https?:\/\//i.test(e.url);return n("div",
{class:"note",children:n("div",{ref:l,tabIndex:-1,class:"opened",children:[n("p",{children:[d?n("a",{href:e.url,target:"_blank",rel:"noopener noreferrer",children:"\
Open the sign-in page"}):b(e.url)," The link expires ",n(T,{at:e.until}),"."]}),n("p",{children:["Your browser ends up at ",n("code",{children:b(e.ends)}),". If\
 it can't open that page, paste its address here."]}),n(M,{error:i}),n("form",{class:"filters",onSubmit:u=>{u.preventDefault(),r.trim()&&c().catch(a)},children:[
n("label",{class:"long",children:["Address of the last page",n("input",{value:r,autocomplete:"off",spellcheck:!1,onInput:u=>s(u.currentTarget.value)})]}),n(w,{disabled:!r.
trim(),onPress:c,onError:a,children:"Finish"})]})]})})}var ul={up:"up",down:"down",sign_in:"sign-in needed",untried:"not tried here"},ml={up:"good",down:"bad",sign_in:"warn",untried:void 0};function Rr(){let e=Z(),t=I(
r=>y(["mcp"],{},r),"",15),o=t.value?.servers;return n(O,{title:"MCP servers",done:e,about:"Programs and services whose tools agents use. Agents can't use a new \
or changed tool until you accept it.",children:[n(D,{...t}),o?.length===0&&n(re,{children:"No MCP servers are configured. See docs/tools.md to add one."}),o?.map(
r=>n(pl,{of:r,outcome:e,again:t.again},r.name))]})}function pl({of:e,outcome:t,again:o}){let[r,s]=f(null),i="server-"+e.name,a=async()=>{let c=await W(["mcp",e.
name,"test"]);s(c),c.up?t.say(`${e.name} lists ${X(c.listed,"tool")}, after ${G(c.ms)}.`):t.fail(new Error(`${e.name} can't be reached: ${b(c.error??"")}`)),o()},
l=()=>{t.say(`Signed in to ${e.name}.`),o()};return n("article",{class:"story","aria-labelledby":i,children:[n("h2",{id:i,children:[n(S,{of:e.name})," ",n(J,{look:ml[e.
state],children:ul[e.state]})]}),n("p",{class:"aside",children:[e.agents.length>0?`Used by ${e.agents.join(", ")}`:"No agent uses it",e.state==="untried"&&". Th\
is process hasn't tried to reach it; in a fleet, workers do"]}),e.error&&n("p",{class:"trouble",children:b(e.error)}),n("div",{class:"rowactions",children:[n(w,
{onPress:a,onError:t.fail,label:`Test ${e.name}`,children:"Test"}),e.sign_in&&e.state!=="up"&&n(Nr,{server:e.name,done:l},e.state)]}),r&&r.unusable.length>0&&n(
"ul",{class:"hints",children:r.unusable.map(c=>n("li",{children:[X(c.tools,"tool")," can't be used: ",c.reason," ",c.names&&n(S,{of:`(${c.names.join(", ")})`})]},
c.reason))}),n(fl,{server:e,outcome:t,again:o}),e.tools.length>0&&n("details",{children:[n("summary",{children:[X(e.tools.length,"tool")," in use"]}),n($r,{server:e.
name,tools:e.tools})]})]})}function fl({server:e,outcome:t,again:o}){let[,r]=f(0),s=A(new Map),i=new Map(e.aside.map(c=>[c.name,s.current.get(c.name)??c]));s.current=
i;let a=c=>{i.set(c.name,c),r(d=>d+1)},l=oe(c=>({title:`Accept ${X(c.length,"tool")}?`,confirm:"Accept all",text:n(h,{children:["Agents read what these tools sa\
y about themselves as if you had said it: ",n(S,{of:c.map(d=>d.name).join(", ")}),". Accept them only if you've read it."]}),act:async()=>{try{for(let d of c)await Pn(
e.name,d);t.say(`Accepted ${X(c.length,"tool")} of ${e.name}.`)}finally{o()}}}));return e.aside.length===0?null:n(h,{children:[n("div",{class:"between",children:[
n("h3",{children:[X(e.aside.length,"tool")," to accept"]}),e.aside.length>1&&n(w,{onPress:()=>l.ask([...i.values()]),label:`Accept all of ${e.name}`,children:"A\
ccept all…"})]}),e.aside.map(c=>n(Dr,{server:e.name,tool:i.get(c.name)??c,changed:i.get(c.name)?.digest!==c.digest,renew:()=>a(c),outcome:t,done:o},c.name)),l.
dialog]})}var Qe={session:"Conversation",person:"Person",agent:"Agent"},gl={session:"main:telegram:42",person:"telegram:42",agent:"main"},Ir=["turn_complete","turn_error"];
function Fr({rest:e}){let t=Z(),[o,r]=f(""),[s="",i=""]=e,a=I(l=>y(["memory"],{after:o,limit:100},l),o,30,[...Ir]);return n(O,{title:"Memory",done:t,about:"What\
 agents remember for all conversations, and about people. Agents read this with every message it applies to.",children:[n(hl,{scope:s,owner:i},s+" "+i),i&&n(bl,
{scope:s,owner:i,outcome:t,changed:a.again},s+" "+i),n(N,{title:"All memories",wide:!0,children:[n(K,{read:a,rows:l=>l.memories,label:"Memories of agents and ab\
out people",id:l=>l.scope+" "+l.owner,empty:"Agents remember nothing about people, and nothing for all conversations.",columns:[{title:"Whose",cell:l=>n(h,{children:[
n("strong",{children:n(S,{of:l.owner})}),n("br",{}),n("span",{class:"aside",children:Ur(l.scope).toLowerCase()})]})},{title:"Size",cell:l=>j(l.bytes),number:!0},
{title:"From strangers",cell:l=>l.untrusted?n(J,{look:"warn",children:"maybe"}):"no"},{title:"Changed",cell:l=>n(T,{at:l.changed})},{title:"Actions",cell:l=>n("\
a",{href:L("memory",l.scope,l.owner),"aria-label":`View the memory of ${l.owner}`,children:"View"})}]}),n(Oe,{after:o,next:a.value?.next,go:r})]})]})}function Ur(e){
return e in Qe?Qe[e]:e}function hl({scope:e,owner:t}){let[o,r]=f(e in Qe?e:"session"),[s,i]=f(t),a=()=>Me("memory",o,s.trim());return n("form",{class:"filters",
onSubmit:l=>{l.preventDefault(),s.trim()&&a()},children:[n("label",{children:["Memory of",n("select",{value:o,onChange:l=>r(l.currentTarget.value),children:Object.
entries(Qe).map(([l,c])=>n("option",{value:l,children:c},l))})]}),n("label",{class:"long",children:[Qe[o],n("input",{value:s,placeholder:gl[o],spellcheck:!1,onInput:l=>i(
l.currentTarget.value)})]}),n(w,{look:"main",disabled:!s.trim(),onPress:a,children:"Show"})]})}function bl({scope:e,owner:t,outcome:o,changed:r}){let s=I(v=>y([
"memory",e,t],{},v),e+" "+t,30,[...Ir]),[i,a]=f(null),l=()=>{s.again(),r()},c=v=>{o.say(v),a(null),l()},d=oe(v=>({title:"Erase this memory?",confirm:"Erase it",
text:n(h,{children:["This erases everything in the memory of ",n(S,{of:t}),". You can't undo it."]}),act:async()=>{await Y(["memory",e,t],v.version).catch(g=>Wr(
g,l)),c(`Erased the memory of ${b(t)}.`)}})),u=s.value;return n(N,{title:`Memory of ${b(t)}`,wide:!0,children:[n(D,{...s}),u&&n(h,{children:[n("p",{class:"aside",
children:[e==="session"?n(h,{children:["Conversation ",n(q,{of:t})]}):Ur(e),u.content!==""&&n(h,{children:[", ",j(Cn(u.content))," of ",j(u.most_bytes)]})," ",u.
untrusted&&n(J,{look:"warn",children:"strangers may have written some of this"})]}),u.redacted&&n("p",{class:"note",children:"Secrets are hidden here. If you sa\
ve your edit, they're removed from the memory, too."}),u.content===""?n("p",{class:"none",children:"Nothing is remembered here."}):n(Ke,{of:u.content,label:"The\
 memory"}),i?n(vl,{base:i,now:u,again:l,close:()=>a(null),saved:()=>c(`Saved the memory of ${b(t)}.`)}):n("div",{class:"after",children:[n(w,{onPress:()=>a(u),children:u.
content===""?"Write":"Edit"}),u.content!==""&&n(w,{look:"danger",onPress:()=>d.ask(u),children:"Erase…"})]})]}),d.dialog]})}function Wr(e,t){throw e instanceof
Q&&e.status===412&&t(),e}function Cn(e){return new TextEncoder().encode(e).length}function vl({base:e,now:t,again:o,saved:r,close:s}){let[i,a]=f(e.content),[l,c]=f(
e.version),[d,u]=f(null),v=ce(),g=t.version!==l,m=Cn(i)>e.most_bytes,p=async()=>{u(null),await uo(["memory",e.scope,e.owner],{content:i},l).catch(k=>Wr(k,o)),r()};
return n("form",{class:"editor",onSubmit:k=>{k.preventDefault(),p().catch(u)},children:[n("label",{class:"long",children:["New text",n("textarea",{ref:v,rows:12,
value:i,onInput:k=>a(k.currentTarget.value)})]}),g&&n("div",{class:"note error",role:"alert",children:[n("span",{children:"This memory changed while you were ed\
iting it. What it says now is shown above. Copy what you need from there."}),n(w,{onPress:()=>{c(t.version),u(null)},children:"Replace it with my text"})]}),m&&
n("p",{class:"note error",role:"alert",children:["That's too long: ",j(Cn(i))," of ",j(e.most_bytes),"."]}),!g&&n(M,{error:d}),n("div",{class:"after",children:[
n(w,{look:"main",disabled:g||m||!i.trim()||i===t.content,onPress:p,onError:u,children:"Save"}),n(w,{onPress:s,children:"Cancel"})]})]})}function qr({tell:e}){let o=I(r=>y(["asks"],{},r),"",60,["ask","ask_resolved"]).value?.asks.length??0;return E(()=>e(o),[o]),o===0?null:n("span",{class:"badge w\
arn",children:[o,n("span",{class:"away",children:" open"})]})}function Ut({caps:e}){return e.length===0?n("p",{class:"none",children:"No cap is in effect, because no model has a known price. See docs/models.md to set price\
s."}):n("ul",{class:"caps",children:e.map(t=>n("li",{children:n(wl,{cap:t})},t.of+t.span))})}function wl({cap:e}){let{most_microdollars:t,spent_microdollars:o,reserved_microdollars:r}=e,
s=Math.max(0,t-o-r),i=l=>t>0?100*l/t:100,a=i(o+r);return n(h,{children:[n("span",{class:"between",children:[n("span",{title:e.setting,children:[e.of==="all"?"Ev\
eryone":n(S,{of:e.of}),", ",e.span==="day"?"today":"this month"]}),n("span",{children:[ze(o)," of ",ze(t)]})]}),n(kt,{spent:i(o),kept:i(r),look:a>=100?"over":a>=
80?"near":""}),n("span",{class:"aside",children:[s>0?`${ze(s)} left`:"nothing left",r>0&&`, ${ze(r)} reserved`]})]})}var Ne=720,Pe=120;function et({title:e,times:t,series:o,says:r,lines:s,summary:i}){return n("figure",{class:"chart",children:[n("figcaption",{children:[n("h3",{
children:e}),n("ul",{class:"legend",children:o.map(a=>n("li",{children:[n("svg",{class:"key "+a.look+(s?" line":""),viewBox:"0 0 14 10","aria-hidden":"true",focusable:"\
false",children:s?n("path",{d:"M0 5H14"}):n("rect",{width:"14",height:"10"})}),a.name]},a.name))})]}),n(An,{label:`${e}. ${i}`,times:t,series:o,says:r,tells:a=>kl(
o,a,r),lines:s}),n(xl,{title:e,times:t,series:o,says:r})]})}function An({label:e,times:t,series:o,says:r,tells:s,lines:i}){let a=Math.max(...i?o.flatMap(c=>c.values.
map(d=>d??0)):t.map((c,d)=>yl(o,d))),l=i?n(Sl,{times:t,series:o,most:a}):n(_l,{times:t,series:o,most:a});return n(h,{children:[n("span",{class:"aside",children:r(
a)}),n("svg",{class:"drawing",viewBox:`0 0 ${Ne} ${Pe}`,preserveAspectRatio:"none",role:"img","aria-label":e,children:[n("rect",{class:"rule",width:Ne,y:Pe-1,height:"\
1"}),l,t.map((c,d)=>n("rect",{class:"over",x:d*Ne/t.length,width:Ne/t.length,height:Pe,children:n("title",{children:[c,": ",s(d)]})},d))]}),n("span",{class:"bet\
ween aside",children:[n("span",{children:t[0]}),n("span",{children:t.length>1&&t.at(-1)})]})]})}function yl(e,t){return e.reduce((o,r)=>o+(r.values[t]??0),0)}function kl(e,t,o){
let r=e.flatMap(s=>s.values[t]?[`${s.name} ${o(s.values[t])}`]:[]);return r.length>0?r.join(", "):"nothing"}function _l({times:e,series:t,most:o}){let r=Ne/e.length;
return n(h,{children:e.map((s,i)=>{let a=0;return t.map(l=>{let c=l.values[i]??0;if(c===0)return null;let d=Math.max(2,Pe*c/o);return a+=d,n("rect",{class:l.look,
x:i*r+r*.12,width:r*.76,y:Math.max(0,Pe-a),height:d},i+l.name)})})})}function Sl({times:e,series:t,most:o}){let r=Ne/e.length,s=i=>i.map((a,l)=>{if(a===null)return"";
let c=(l+.5)*r,d=Pe-2-(Pe-4)*a/o,u=i[l-1];return u==null&&(i[l+1]??null)===null?`M${c-r*.3} ${d}H${c+r*.3}`:`${u==null?"M":"L"}${c} ${d}`}).join("");return n(h,
{children:t.map(i=>n("path",{class:"line "+i.look,d:s(i.values)},i.name))})}function xl({title:e,times:t,series:o,says:r}){let s=t.map((a,l)=>({time:a,at:l})).filter(
({at:a})=>o.some(l=>l.values[a])),i=[{title:"Time",cell:a=>a.time},...o.map(a=>({title:a.name,cell:l=>a.values[l.at]?r(a.values[l.at]??0):"–",number:!0}))];return n(
"details",{children:[n("summary",{children:["Numbers",n("span",{class:"away",children:[" of ",e]})]}),n(z,{label:e,columns:i,rows:s,id:a=>String(a.at),empty:"No\
thing was counted."})]})}var Mn=36e5,Re=24*Mn,Wt={day:{title:"the last 24 hours",by:"hour",back:23*Mn,step:Mn},month:{title:"the last 30 days",by:"day",back:29*Re,step:Re},quarter:{title:"\
the last 90 days",by:"day",back:89*Re,step:Re}},Tl={hour:2e3,day:2e4};function jr(){let[e,t]=f("day"),{by:o,back:r}=Wt[e],s=()=>new Date(Date.now()-r).toISOString(),
i=I(a=>y(["activity"],{by:o,since:s()},a),e,60,["turn_complete","turn_error"],Tl[o]);return n(N,{title:"Over time",wide:!0,children:[n("div",{class:"filters",children:[
n("label",{children:["Show",n("select",{value:e,onChange:a=>t(a.currentTarget.value),children:Object.keys(Wt).map(a=>n("option",{value:a,children:Wt[a].title},a))})]}),
o==="day"&&n("span",{class:"aside",children:"Days are in UTC."})]}),n(D,{...i}),n("div",{class:"charts",children:[i.value&&n(Pl,{of:i.value,span:e}),n(Ml,{})]}),
i.value&&i.value.total.calls>0&&n(Al,{tools:i.value.total.tools,more:i.value.total.more_tools})]})}function El(e,t){return t===Re?ge(e):new Date(e).toLocaleString(
"en-US",{weekday:"short",hour:"2-digit",minute:"2-digit",hourCycle:"h23"})}function Pl({of:e,span:t}){let{title:o,step:r}=Wt[t],{turns:s}=e.total,i=s.failed+s.given_up;
if(i+s.done+s.stopped+s.refused===0&&e.total.calls===0)return n("p",{class:"none",children:["No turn has ended in ",o,". When the agent answers, you'll see here\
 how many answers there are, how long they take, and how its tools do."]});let l=new Map(e.sums.map(g=>[Date.parse(g.at),g])),c=rn(Date.parse(e.since),Date.now(),
r),d=c.map(g=>El(g,r)),u=g=>c.map(m=>{let p=l.get(m);return p?g(p):null}),v=[{name:"Answered",look:"c-main",values:u(g=>g.turns.done)},{name:"Failed",look:"c-ba\
d",values:u(g=>g.turns.failed)},{name:"Given up",look:"c-warn",values:u(g=>g.turns.given_up)},{name:"Stopped",look:"c-faint",values:u(g=>g.turns.stopped)},{name:"\
Refused by a limit",look:"c-good",values:u(g=>g.turns.refused)}];return n(h,{children:[n(et,{title:"Answers and errors",times:d,series:v,says:P,summary:`In ${o}\
: ${X(s.done,"answer")}, ${P(i)} failed or given up, ${P(s.stopped)} stopped, ${P(s.refused)} refused.`}),n(Hr,{title:"Until the first text",of:e,times:d,each:u,
pick:g=>g.first_token}),n(Hr,{title:"Until the answer is complete",of:e,times:d,each:u,pick:g=>g.answer}),e.total.calls>0&&n(et,{title:"Calls of tools",times:d,
says:P,summary:`In ${o}: ${X(e.total.calls,"call")}, of which ${P(e.total.failed_calls)} did not succeed.`,series:[{name:"Succeeded",look:"c-main",values:u(g=>g.
calls-g.failed_calls)},{name:"Didn't succeed",look:"c-bad",values:u(g=>g.failed_calls)}]})]})}function Hr({title:e,of:t,times:o,each:r,pick:s}){let i=s(t.total);
if(i.count===0)return n("figure",{class:"chart",children:[n("figcaption",{children:n("h3",{children:e})}),n("p",{class:"none",children:"No answers yet."})]});let a=c=>r(
d=>s(d).count>0?s(d)[c]:null),l=[{name:"Half of them (p50)",look:"c-main",values:a("p50_ms")},{name:"95 in 100 (p95)",look:"c-warn dashed",values:a("p95_ms")}];
return n(et,{title:e,times:o,series:l,says:G,lines:!0,summary:`Half of ${X(i.count,"answer")} took up to ${G(i.p50_ms)}, and 95 in 100 up to ${G(i.p95_ms)}.`})}
var Cl={failed:"failed",denied:"denied",timeout:"timed out",cancelled:"cancelled",unknown:"outcome unknown"};function Al({tools:e,more:t}){return n(h,{children:[
n("h3",{children:"Tools"}),n(z,{label:"Calls of tools and how they ended",columns:[{title:"Tool",cell:r=>n(S,{of:r.tool})},{title:"Calls",cell:r=>P(r.calls),number:!0},
{title:"Success",cell:r=>n(Jl,{of:r})},{title:"Other outcomes",cell:r=>Object.entries(r.outcomes).filter(([s,i])=>s!=="ok"&&i>0).map(([s,i])=>`${P(i)} ${Cl[s]??
s}`).join(", ")}],rows:e,id:r=>r.tool,empty:"No tool was called."}),t&&n("p",{class:"aside",children:"Other tools were called, too, but less often."})]})}function Jl({
of:e}){let t=100*(e.outcomes.ok??0)/e.calls;return n("span",{class:"success",children:[n("span",{children:[t===100?"100":Math.min(99,Math.floor(t)),"%"]}),n(kt,
{spent:t,look:t>=90?"":t>=50?"near":"over"})]})}var Jn=["c-main","c-good","c-warn","c-bad"],zr=14;function Ml(){let e=ge(Date.now()),t=ge(Date.now()-(zr-1)*Re),
o=I(a=>y(["usage"],{by:"day,model",from:t,to:e},a),t,300);if(!o.value)return o.error?n(D,{...o}):null;let r=o.value.usage.filter(a=>a.microdollars>0);if(r.length===
0)return null;let s=ft(t,e),i=r.reduce((a,l)=>a+l.microdollars,0);return n(et,{title:"Cost by day and model",times:s,series:Bl(r,s),says:ee,summary:`${ee(i)} in\
 ${zr} days, which are in UTC.`})}function Bl(e,t){let o=new Map;for(let l of e)o.set(l.then??"",(o.get(l.then??"")??0)+l.microdollars);let r=[...o].sort((l,c)=>c[1]-
l[1]).map(([l])=>l),s=l=>t.map(c=>e.reduce((d,u)=>u.key===c&&l(u.then??"")?d+u.microdollars:d,0)||null),i=r.slice(0,Jn.length).map((l,c)=>({name:l||"unknown",look:Jn[c]??
"",values:s(d=>d===l)})),a=r.slice(Jn.length);return a.length>0&&i.push({name:"others",look:"c-faint",values:s(l=>a.includes(l))}),i}async function Ol(e){let t=ge(Date.now()),[o,r,s]=await Promise.all([y(["status"],{},e),Ll(e),y(["usage"],{by:"day",from:t,to:t},e)]);return{status:o,readiness:r,
usage:s}}async function Ll(e){let t=await qe("/readyz",{signal:e});if(!t.ok&&t.status!==503)throw await Te(t);return await t.json()}function Vr({me:e}){let t=I(
Ol,"",5,["turn_start","parked","turn_complete","turn_error","ask","ask_resolved","dead_letter","job","channel"]),o=t.value;return n(O,{title:"Overview",children:[
n(D,{...t}),o&&n(h,{children:[n("p",{class:"about",children:["Parley ",o.status.version," (",o.status.role,"), up for ",n(de,{at:o.status.started})," ",n(Xl,{readiness:o.
readiness})]}),n(Dl,{now:o,me:e}),n("div",{class:"blocks",children:[n(Nl,{status:o.status,me:e}),n(Rl,{status:o.status}),n(Il,{usage:o.usage}),n(Fl,{status:o.status})]}),
n(jr,{})]})]})}function Xl({readiness:e}){let t=Object.entries(e.parts).filter(([,o])=>o!=="ok");return e.ready&&t.length===0?n(J,{look:"good",children:"ready"}):
n(h,{children:[n(J,{look:"bad",children:"not ready"}),t.map(([o,r])=>n("span",{class:"trouble",children:[" ",o,": ",r]},o))]})}function Dl({now:e,me:t}){let{status:o,
usage:r}=e,s=o.topics.reduce((c,d)=>c+d.dead,0),i=o.channels.filter(c=>!c.up).length,a=r.usage.reduce((c,d)=>c+d.microdollars,0),l=o.asks?.count??0;return n("ul",
{class:"tiles",children:[n(Ie,{figure:P(o.turns?.count??0),what:"running"}),n(Ie,{figure:P(o.waiting?.count??0),what:"waiting"}),n(Ie,{figure:P(l),what:He(l,"op\
en request"),look:l?"warn":"",to:t.may.approve?L("approvals"):void 0}),n(Ie,{figure:P(s),what:He(s,"dead letter"),look:s?"bad":"",to:t.may.admin?L("dead-letters"):
void 0}),n(Ie,{figure:i?`${i} of ${o.channels.length}`:P(o.channels.length),what:`${He(o.channels.length,"channel")} ${i?"down":"up"}`,look:i?"bad":""}),n(Ie,{figure:ee(
a),what:"today",to:L("usage")})]})}function Ie({figure:e,what:t,look:o,to:r}){let s=n(h,{children:[n("strong",{class:o,children:e})," ",n("span",{children:t})]});
return n("li",{children:r?n("a",{href:r,children:s}):n("div",{children:s})})}function $l(e){return e.turn?e.calls.length===0?n(h,{children:"calling the model"}):
n(h,{children:["running ",e.calls.map((t,o)=>n("span",{children:[o>0&&", ",n("code",{children:t.tool||"a tool"})," for ",n(de,{at:t.since})]},t.call))]}):n(h,{children:"\
starting or finishing"})}function tt({of:e,id:t,item:o,empty:r}){return!e||e.count===0?n("p",{class:"none",children:r}):n(h,{children:[n("ul",{class:"items",children:e.
list.map(s=>n("li",{children:o(s)},t(s)))}),e.count>e.list.length&&n("p",{class:"none",children:["and ",P(e.count-e.list.length)," more"]})]})}function Nl({status:e,
me:t}){return n(h,{children:[n(N,{title:"Running now",children:n(tt,{of:e.turns,id:o=>o.session,empty:"Nothing is running. You'll see a turn here while the agen\
t works on an answer.",item:o=>n(h,{children:[n(q,{of:o.session}),n("span",{class:"aside",children:[$l(o),"; ",n(de,{at:o.since})," so far",o.person&&n(h,{children:[
", ",n(S,{of:o.person})]})," ",t.may.admin&&n(V,{of:o.turn})]})]})})}),n(N,{title:"Waiting for a worker",children:n(tt,{of:e.waiting,id:o=>o.session,empty:"No m\
essages are waiting.",item:o=>n(h,{children:[n(q,{of:o.session}),n("span",{class:"aside",children:[X(o.messages,"message"),", the first one ",n(T,{at:o.since}),
o.next&&n(h,{children:["; next try ",n(T,{at:o.next})]})," ",t.may.admin&&n(V,{of:o.session})]})]})})}),n(N,{title:"Waiting for people",children:n(tt,{of:e.asks,
id:o=>o.id,empty:"No open requests.",item:o=>n(h,{children:[t.may.approve?n("a",{href:L("approvals",o.id),children:o.tool||o.kind}):n("strong",{children:o.tool||
o.kind}),n("span",{class:"aside",children:["for ",n(S,{of:o.person}),", asked ",n(T,{at:o.since}),"; expires ",n(T,{at:o.expires}),"; ",o.decides.join(" or "),"\
 can answer"]})]})})}),n(N,{title:"Jobs",children:n(tt,{of:e.jobs,id:o=>o.id,empty:"No background commands are running.",item:o=>n(h,{children:[n(q,{of:o.session}),
n("span",{class:"aside",children:[n("code",{children:o.tool})," for ",n(de,{at:o.since}),"; times out ",n(T,{at:o.deadline})]})]})})})]})}function Rl({status:e}){
let t=e.topics.filter(o=>o.dead>0);return n(N,{title:"Channels",children:[e.channels.length===0&&n("p",{class:"none",children:"No channels are configured. Run p\
arley onboard to add one."}),n("ul",{class:"items",children:e.channels.map(o=>n("li",{children:[n("span",{children:[n("strong",{children:o.name})," ",o.up?n(J,{
look:"good",children:"up"}):n(J,{look:"bad",children:"down"}),o.since&&n("span",{class:"aside",children:[" for ",n(de,{at:o.since})]})]}),!o.up&&o.reason&&n("sp\
an",{class:"trouble",children:o.reason}),(o.platform||o.bot)&&n("span",{class:"aside",children:[o.platform,o.bot&&n(h,{children:[" as ",n(S,{of:o.bot})]})]}),o.
last_in&&n("span",{class:"aside",children:["last message from people ",n(T,{at:o.last_in})]}),o.last_out&&n("span",{class:"aside",children:["last message sent ",
n(T,{at:o.last_out})]})]},o.name))}),t.length>0&&n(h,{children:[n("h3",{children:"Dead letters"}),n("ul",{class:"items",children:t.map(o=>n("li",{children:n("sp\
an",{children:[n(S,{of:o.topic}),": ",X(o.dead,"dead letter")]})},o.topic))})]})]})}function Il({usage:e}){let t=e.usage.reduce((r,s)=>r+s.calls,0),o=e.usage.reduce(
(r,s)=>r+s.unpriced,0);return n(N,{title:"Cost",children:[n("p",{class:"none",children:[t===0?"No model calls today (UTC).":`${X(t,"model call")} today (UTC).`,
o>0&&` The price of ${P(o)} is unknown.`]}),n(Ut,{caps:e.caps})]})}function Fl({status:e}){return n(N,{title:"Due next",children:n(tt,{of:e.schedules,id:t=>t.id,
empty:"Nothing is scheduled.",item:t=>n(h,{children:[n(T,{at:t.next}),n("span",{class:"aside",children:["for ",n(S,{of:t.person})," in ",n(q,{of:t.session})]})]})})})}var Ul={owner:"owner",admitted:"has access",asks:"wants access"};function Kr(){let e=Z(),t=I(s=>y(["pairings"],{},s),"",10),o=async s=>{let i=await W(["pairings"],
{code:s});e.say(`${nt(i)} now has access.`),t.again()},r=oe(s=>({title:s.state==="asks"?"Refuse access?":"Revoke access?",confirm:s.state==="asks"?"Refuse":"Rev\
oke",text:n(h,{children:[nt(s)," (",n(S,{of:s.person}),") ",s.state==="asks"?"will need to ask for access again.":"can't talk to the agent anymore, unless someo\
ne gives them access again."]}),act:async()=>{await Y(["pairings",s.person]),e.say(s.state==="asks"?`You refused ${nt(s)} access.`:`${nt(s)} no longer has acces\
s.`),t.again()}}));return n(O,{title:"People",done:e,about:"People who got access with a code, and people who want it. The configuration can name others.",children:[
n(Wl,{admit:o,outcome:e}),n(K,{read:t,rows:s=>s.pairings,label:"People who have access or want it",id:s=>s.person,empty:'Nobody has access or wants it yet. Peop\
le who write to the agent on a channel with access = "pairing" get a code and show up here.',columns:[{title:"Person",cell:s=>n(h,{children:[s.name&&n(h,{children:[
n("strong",{children:n(S,{of:s.name})}),n("br",{})]}),n("span",{class:"aside",children:n(S,{of:s.person})})]})},{title:"State",cell:s=>n(J,{look:s.state==="asks"?
"warn":"good",children:Ul[s.state]??s.state})},{title:"Code",cell:s=>s.code&&n("code",{children:s.code})},{title:"Since",cell:s=>n(T,{at:s.at})},{title:"Actions",
cell:s=>n(w,{look:"danger",onPress:()=>r.ask(s),label:(s.state==="asks"?"Refuse ":"Revoke ")+nt(s),children:s.state==="asks"?"Refuse…":"Revoke…"})}]}),n(ql,
{}),r.dialog]})}function nt(e){return b(e.name||e.person)}function Wl({admit:e,outcome:t}){let[o,r]=f(""),s=async()=>{await e(o.trim()),r("")};return n("form",{
class:"filters",onSubmit:i=>{i.preventDefault(),o.trim()&&s().catch(t.fail)},children:[n("label",{children:["Code that the person got from the agent",n("input",
{value:o,autocomplete:"off",spellcheck:!1,onInput:i=>r(i.currentTarget.value)})]}),n(w,{look:"main",disabled:!o.trim(),onPress:s,onError:t.fail,children:"Give a\
ccess"})]})}function ql(){let e=B(t=>y(["chats"],{},t),"");return n(N,{title:"Chats",wide:!0,children:n(K,{read:e,rows:t=>t.chats,label:"Chats where people talk\
ed to the agent",id:t=>t.address+" "+t.session,empty:"Nobody has talked to the agent yet.",columns:[{title:"Chat",cell:t=>n(h,{children:[t.name&&n(h,{children:[
n("strong",{children:n(S,{of:t.name})}),n("br",{})]}),n("span",{class:"aside",children:n(S,{of:t.address})})]})},{title:"Kind",cell:t=>t.group?"group":"private"},
{title:"Session",cell:t=>n(q,{of:t.session})},{title:"Since",cell:t=>n(T,{at:t.since})},{title:"Messages",cell:t=>n(V,{of:t.address})}]})})}function Bn({of:e,done:t,close:o}){let[r,s]=f(""),[i,a]=f(""),[l,c]=f(e?.when??""),[d,u]=f(e?.time_zone??Intl.DateTimeFormat().resolvedOptions().timeZone),[v,g]=f(
e?.text??""),[m]=f(()=>crypto.randomUUID()),[p,k]=f(null),_=ce(),C=async()=>{k(null);let x={when:l.trim(),text:v.trim(),time_zone:d.trim()};e?await pt(["schedul\
es",e.id],Hl(e,x)):await W(["schedules"],{...x,session:r.trim(),...i.trim()?{person:i.trim()}:{}},m),t()};return n(N,{title:e?"Edit schedule":"New schedule",wide:!0,
box:_,children:n("form",{class:"editor",onSubmit:x=>{x.preventDefault(),C().catch(k)},children:[!e&&n(zl,{session:r,person:i,setSession:s,setPerson:a}),n("label",
{children:["When",n("input",{value:l,required:!0,placeholder:"0 9 * * *",spellcheck:!1,onInput:x=>c(x.currentTarget.value)}),n("span",{class:"aside",children:"F\
or example: in 2h, every 1d, 2030-01-31 09:00, or a cron expression"})]}),n("label",{children:["Time zone",n("input",{value:d,spellcheck:!1,onInput:x=>u(x.currentTarget.
value)})]}),n("label",{class:"long",children:["Message to the agent",n("textarea",{rows:3,required:!0,maxLength:4e3,value:v,onInput:x=>g(x.currentTarget.value)})]}),
n(M,{error:p}),n("div",{class:"after",children:[n(w,{look:"main",disabled:!l.trim()||!v.trim()||!e&&!r.trim(),onPress:C,onError:k,children:"Save"}),n(w,{onPress:o,
children:"Close"})]})]})})}function Hl(e,t){let o={};return t.when!==e.when&&(o.when=t.when),t.text!==e.text&&(o.text=t.text),t.time_zone!==e.time_zone&&(o.time_zone=
t.time_zone),o}function zl({session:e,person:t,setSession:o,setPerson:r}){let s=B(i=>y(["chats"],{},i),"");return n(h,{children:[n("label",{children:["Session",
n("input",{value:e,required:!0,list:"sessions-known",placeholder:"main:telegram:42",spellcheck:!1,onInput:i=>o(i.currentTarget.value)}),n("datalist",{id:"sessio\
ns-known",children:s.value?.chats.map(i=>n("option",{value:i.session,children:i.name??i.address},i.session))})]}),n("label",{children:["On behalf of",n("input",
{value:t,placeholder:"telegram:42",spellcheck:!1,onInput:i=>r(i.currentTarget.value)})]})]})}var jl={done:"good",failed:"bad",running:"warn"};function Yr({of:e,why:t,close:o}){let r=I(s=>y(["schedules",e.id],{limit:20},s),e.id,20,["turn_start","turn_com\
plete","turn_error"]);return n(Be,{title:"Runs",close:o,children:n(K,{read:r,rows:s=>s.runs,label:`Turns that the schedule ${e.id} started, newest first`,id:s=>s.
id,empty:"No runs yet.",columns:[{title:"Started",cell:s=>n(T,{at:s.begun})},{title:"Due",cell:s=>s.due?n(T,{at:s.due}):"started manually"},{title:"State",cell:s=>n(
h,{children:[n(J,{look:jl[s.state],children:s.state})," ",s.code]})},{title:"Turn",cell:s=>t?n(V,{of:s.id}):n("code",{children:s.turn})}]})})}function Gr({me:e}){let t=Z(),[o,r]=f(null),s=I(c=>y(["schedules"],{limit:200},c),"",20,["turn_start","turn_complete"]),i=c=>{t.say(c),r(null),s.again()},a={pause:async c=>{
await pt(["schedules",c.id],{paused:!c.paused}),i(c.paused?"Schedule resumed.":"Schedule paused. It won't catch up on the runs that it misses.")},run:async c=>{
let{id:d}=await W(["schedules",c.id,"run"],{},crypto.randomUUID());i(`Running now as ${d}.`)}},l=oe(c=>({title:"Cancel this schedule?",confirm:"Cancel schedule",
text:n(h,{children:["The agent won't get “",b(c.text),"” anymore."]}),act:async()=>{await Y(["schedules",c.id]),i("Schedule canceled.")}}));return n(O,{title:"\
Schedules",done:t,about:e.may.admin?"What the agent does later, once or regularly.":"What the agent does later for you, once or regularly. To change it, ask the\
 agent.",children:[e.may.admin&&o?.what!=="new"&&n("div",{class:"filters",children:n(w,{look:"main",onPress:()=>r({what:"new"}),children:"New schedule"})}),o?.what===
"new"&&n(Bn,{done:()=>i("Schedule created."),close:()=>r(null)}),n(D,{...s}),s.value&&n(Vl,{schedules:s.value.schedules,mayChange:e.may.admin,change:c=>r({what:"\
change",of:c}),runs:c=>r({what:"runs",of:c}),pause:a.pause,run:a.run,cancel:l.ask,fail:t.fail}),s.value?.next&&n("p",{class:"none after",children:"There are mor\
e schedules than these."}),o?.what==="change"&&n(Bn,{of:o.of,done:()=>i("Schedule saved."),close:()=>r(null)},o.of.id),o?.what==="runs"&&n(Yr,{of:o.of,why:e.may.
admin,close:()=>r(null)},o.of.id),l.dialog]})}function Vl({schedules:e,mayChange:t,change:o,runs:r,pause:s,run:i,cancel:a,fail:l}){return n(z,{label:"Schedules,\
 next due first",rows:e,id:c=>c.id,empty:"Nothing is scheduled. Ask the agent to do something later, such as every morning"+(t?", or create a schedule here.":"."),
columns:[{title:"Next",cell:c=>c.next?n(T,{at:c.next}):n(J,{look:"warn",children:c.paused?"paused":"finished"})},{title:"When",cell:c=>n(h,{children:[n("code",{
children:b(c.when)}),n("br",{}),n("span",{class:"aside",children:c.time_zone})]})},{title:"Message",cell:c=>n("span",{class:"saying",children:b(c.text)})},{title:"\
For",cell:c=>n(h,{children:[n(S,{of:c.person}),n("br",{}),n(q,{of:c.session})]})},{title:"Actions",cell:c=>n("div",{class:"rowactions",children:[t&&n(w,{onPress:()=>i(
c),onError:l,label:`Run now: ${c.id}`,children:"Run now"}),t&&n(w,{onPress:()=>s(c),onError:l,label:`${c.paused?"Resume":"Pause"}: ${c.id}`,children:c.paused?"R\
esume":"Pause"}),t&&n(w,{onPress:()=>o(c),label:`Edit: ${c.id}`,children:"Edit"}),n(w,{onPress:()=>r(c),label:`Runs: ${c.id}`,children:"Runs"}),t&&n(w,{look:"da\
nger",onPress:()=>a(c),label:`Cancel: ${c.id}`,children:"Cancel…"})]})}]})}var Zr=500,Kl=200,Yl={debug:"Everything",info:"Info and above",warn:"Warnings and errors",error:"Errors"};function Qr(){let[e,t]=f("info"),[o,r]=f(!1),s=Ql(e,o);
return n(O,{title:"Log",about:"What the server that answers here writes about its work, without what people or models said. With several servers, each has its o\
wn log.",children:[n("div",{class:"filters",children:[n("label",{children:["Level",n("select",{value:e,onChange:i=>t(i.currentTarget.value),children:Object.entries(
Yl).map(([i,a])=>n("option",{value:i,children:a},i))})]}),n(w,{onPress:()=>r(!o),children:o?"Follow":"Pause"}),n("span",{role:"status",class:"aside",children:o?
"Paused.":s.live?"Following.":s.why?"":"Connecting…"})]}),n(M,{error:s.why&&new Error(s.why)}),n(z,{label:"Lines of the log, newest first",rows:s.lines,id:i=>String(
i.id),empty:"No lines of this level yet.",columns:[{title:"Time",cell:i=>n(ht,{at:i.at})},{title:"Level",cell:i=>n(Gl,{of:i.level})},{title:"Message",cell:i=>n(
"span",{class:"name",children:b(i.message)})},{title:"Details",cell:i=>n(Zl,{of:i.fields})}]})]})}function Gl({of:e}){return n(J,{look:e==="ERROR"?"bad":e==="WA\
RN"?"warn":void 0,children:e.toLowerCase()})}function Zl({of:e}){let t=typeof e.turn=="string"?e.turn:void 0,o=Object.entries(e).filter(([,r])=>r!=="").map(([r,
s])=>r+"="+(typeof s=="string"?s:JSON.stringify(s)));return n(h,{children:[n("span",{class:"name aside",children:b(o.join(" "))})," ",n(V,{of:t})]})}function Ql(e,t){
let[o,r]=f([]),[s,i]=f({live:!1,why:""}),a=A([]);return E(()=>{if(t)return;let l=new AbortController,c=!1,d,u=()=>{d=void 0;let[m,p]=[a.current.reverse(),c];a.current=
[],c=!1,r(k=>(p?m:[...m,...k]).slice(0,Zr))},g={event:(m,p)=>{m==="reset"?(c=!0,a.current=[]):m==="line"&&(a.current.push(p),a.current.length>Zr&&a.current.shift()),
d??=setTimeout(u,Kl)},state:(m,p="")=>i({live:m==="live",why:p})};return Tt(ne(["logs","events"],{level:e}),g,l.signal),()=>{l.abort(),clearTimeout(d),a.current=
[],i({live:!1,why:""})}},[e,t]),{lines:o,...s}}function es(e){return e.map(t=>t.map(ec).join(",")+`\r
`).join("")}function ec(e){if(typeof e=="number"||/^\d+(\.\d+)?$/.test(e))return String(e);let t=/^[=+\-@\t\r]/.test(e)?"'"+e:e;return/[",\r\n]/.test(t)?'"'+t.replaceAll(
'"','""')+'"':t}function ts(e,t){let o=URL.createObjectURL(new Blob([t],{type:"text/csv;charset=utf-8"})),r=document.createElement("a");r.href=o,r.download=e,r.
click(),setTimeout(()=>URL.revokeObjectURL(o),1e4)}var On={day:"Day",model:"Model",person:"Person",agent:"Agent",session:"Session"};function Ln(){return ge(Date.now())}function ns(){return Ln().slice(0,8)+"01"}function rs(){
let[e,t]=f(ns),[o,r]=f(Ln),[s,i]=f("model"),a=e+" "+o,l=B(c=>y(["usage"],{by:"day",from:e,to:o},c),a);return n(O,{title:"Usage",about:"What models used and cost\
. Days are in UTC.",children:[n("form",{class:"filters",onSubmit:c=>c.preventDefault(),children:[n("label",{children:["From",n("input",{type:"date",value:e,max:o,
onChange:c=>t(c.currentTarget.value||ns())})]}),n("label",{children:["To",n("input",{type:"date",value:o,min:e,onChange:c=>r(c.currentTarget.value||Ln())})]})]}),
n(D,{...l}),l.value&&n(h,{children:[n(N,{title:"What's left now",children:n(Ut,{caps:l.value.caps})}),n(N,{title:"By day",wide:!0,children:[n(tc,{days:l.value.usage,
from:e,to:o}),n(ss,{by:"day",sums:l.value.usage,span:a})]}),n(nc,{by:s,choose:i,from:e,to:o}),n("p",{class:"aside",children:["Prices as of ",l.value.prices,"."]})]})]})}
function tc({days:e,from:t,to:o}){let r=e.some(g=>g.microdollars>0),s=r?ee:g=>P(g)+" tokens",i=ft(t,o),a=i.map(g=>e.find(m=>m.key===g)),l=a.map(g=>g?r?g.microdollars:
os(g):0),c=Math.max(0,...l);if(c===0)return null;let d=g=>{let m=a[g];return m?`${r?ee(m.microdollars)+", ":""}${X(m.calls,"call")}, ${P(os(m))} tokens`:"nothin\
g"},u=l.indexOf(c),v=`${r?"Cost":"Tokens"} per day from ${t} to ${o}. Highest: ${i[u]}: ${d(u)}. The table below lists all days.`;return n("div",{class:"plot",children:n(
An,{label:v,times:i,series:[{name:"",look:"c-main",values:l}],says:s,tells:d})})}var os=e=>e.input+e.output;function nc({by:e,choose:t,from:o,to:r}){let s=o+" "+
r,i=B(a=>y(["usage"],{by:e,from:o,to:r},a).then(l=>({by:e,sums:l.usage})),e+" "+s);return n(N,{title:"By "+e,wide:!0,children:[n("div",{class:"filters",children:n(
"label",{children:["Group by",n("select",{value:e,onChange:a=>t(a.currentTarget.value),children:Object.keys(On).filter(a=>a!=="day").map(a=>n("option",{value:a,
children:On[a].toLowerCase()},a))})]})}),n(D,{...i}),i.value&&i.value.by===e&&n(ss,{by:e,sums:i.value.sums,span:s})]})}function oc(e,t){return e.unpriced===e.calls&&
e.calls>0?"unknown":t(e.microdollars)+(e.unpriced+e.estimated>0?" *":"")}function ss({by:e,sums:t,span:o}){let r=So(t.map(c=>c.microdollars)),s=[{title:On[e],cell:c=>b(
c.key||"(erased)")},{title:"Calls",cell:c=>P(c.calls),number:!0},{title:"Input",cell:c=>P(c.input),number:!0},{title:"Cached",cell:c=>P(c.cached),number:!0},{title:"\
Output",cell:c=>P(c.output),number:!0},{title:"Reasoning",cell:c=>P(c.reasoning),number:!0},{title:"Cost",cell:c=>oc(c,r),number:!0}],i=t.reduce((c,d)=>c+d.unpriced,
0),a=t.reduce((c,d)=>c+d.estimated,0),l=()=>ts(`parley-usage-by-${e}-${o.replace(" ","-to-")}.csv`,rc(e,t));return n(h,{children:[n(z,{label:`Usage by ${e}; inp\
ut, cached, output and reasoning are tokens`,columns:s,rows:t,id:c=>c.key,empty:"No model calls in this period."}),i>0&&n("p",{class:"aside",children:["* The co\
st of ",X(i,"call")," is unknown. See docs/models.md to set prices."]}),a>0&&n("p",{class:"aside",children:["* The tokens of ",X(a,"call")," are estimates, beca\
use the provider didn't count them."]}),t.length>0&&n("div",{class:"after",children:n(w,{onPress:l,label:`Download CSV: usage by ${e}`,children:"Download CSV"})})]})}
function rc(e,t){return es([[e,"calls","input_tokens","cached_tokens","output_tokens","reasoning_tokens","dollars","calls_estimated","calls_unpriced"],...t.map(
r=>[r.key,r.calls,r.input,r.cached,r.output,r.reasoning,(r.microdollars/1e6).toFixed(6),r.estimated,r.unpriced])])}function is({rest:e}){let t=e[0]??"";return n(O,{title:"Why",about:"What happened to a message: who let it in, what ran, what people were asked, and whether the\
 answer was sent. It never shows what anyone said.",children:[n(sc,{id:t},t),t&&n(ic,{id:t})]})}function sc({id:e}){let[t,o]=f(e),r=()=>Me("why",t.trim());return n(
"form",{class:"filters",onSubmit:s=>{s.preventDefault(),t.trim()&&r()},children:[n("label",{class:"long",children:["Message, session, chat or person",n("input",
{value:t,placeholder:"telegram:42",spellcheck:!1,onInput:s=>o(s.currentTarget.value)})]}),n(w,{look:"main",disabled:!t.trim(),onPress:r,children:"Show"})]})}function ic({
id:e}){let t=B(r=>y(["why",e],{},r).then(s=>({id:e,told:s})),e),o=t.value?.id===e?t.value.told:void 0;return n("div",{"aria-live":"polite",children:[n(D,{value:o,
error:t.error,again:t.again}),o&&o.about!=="message"&&o.messages.length>0&&n("p",{class:"aside",children:["Latest messages of the ",o.about," ",b(o.id),":"]}),o?.
messages.map(r=>n(cc,{of:r},r.message)),o&&o.messages.length===0&&n("p",{class:"none",children:["No messages found for ",b(o.id),"."]}),o?.hints&&o.hints.length>
0&&n("ul",{class:"hints",children:o.hints.map((r,s)=>n("li",{children:n(wt,{text:r})},s))})]})}var ac=new Set(["answered","done"]),lc=new Set(["running","waitin\
g","waiting_for_people","sending"]);function cc({of:e}){let t=ac.has(e.outcome)?"good":lc.has(e.outcome)?"warn":"bad",o="story-"+e.message;return n("article",{class:"\
story","aria-labelledby":o,children:[n("h2",{id:o,children:[n("span",{class:"name",children:b(e.message)})," ",n(J,{look:t,children:e.outcome.replaceAll("_"," ")})]}),
n("p",{class:"aside",children:[e.steps[0]?.at&&n(T,{at:e.steps[0].at}),e.session&&n(h,{children:[" in ",n(q,{of:e.session})]})]}),n("ol",{class:"steps",children:e.
steps.map((r,s)=>n("li",{children:[n("span",{class:"at",children:r.at&&n(ht,{at:r.at})})," ",n("span",{children:n(wt,{text:r.text})})]},s))}),n("p",{children:[n(
"strong",{children:n(wt,{text:e.says})})," ",e.outcome==="waiting_for_people"&&n("a",{href:L("approvals"),children:"See open requests"})]})]})}function as(){return[{name:"chat",title:"Chat",group:"Conversations",may:e=>e.may.agent||e.may.own||e.may.read,show:kr},{name:"approvals",title:"Approvals",group:"\
Conversations",may:e=>e.may.approve||e.may.agent,show:Er,beside:qr},{name:"people",title:"People",group:"Conversations",may:e=>e.may.admin,show:Kr},{name:"overv\
iew",title:"Overview",group:"Now",may:e=>e.may.read,show:Vr},{name:"dead-letters",title:"Dead letters",group:"Now",may:e=>e.may.admin,show:Mr},{name:"schedules",
title:"Schedules",group:"Now",may:e=>e.may.admin||e.may.own,show:Gr},{name:"jobs",title:"Jobs",group:"Now",may:e=>e.may.read,show:Lr},{name:"agents",title:"Agen\
ts",group:"Setup",may:e=>e.may.read,show:Sr},{name:"mcp",title:"MCP servers",group:"Setup",may:e=>e.may.admin,show:Rr},{name:"configuration",title:"Configuratio\
n",group:"Setup",may:e=>e.may.admin,show:Jr},{name:"memory",title:"Memory",group:"Setup",may:e=>e.may.admin,show:Fr},{name:"browsers",title:"Browsers",group:"Se\
tup",may:()=>!0,show:Cr},{name:"usage",title:"Usage",group:"Records",may:e=>e.may.read,show:rs},{name:"audit",title:"Audit",group:"Records",may:e=>e.may.admin,show:Pr},
{name:"why",title:"Why",group:"Records",may:e=>e.may.admin,show:is},{name:"doctor",title:"Doctor",group:"Records",may:e=>e.may.admin,show:Or},{name:"log",title:"\
Log",group:"Records",may:e=>e.may.admin,show:Qr}]}function ls(){let[e,t]=f({state:"asking"}),[o,r]=f(0);switch(E(()=>{co(()=>t(s=>s.state==="in"?{state:"out",error:new Error("You've been signed out. Sign in aga\
in.")}:s)),wo(vo()).then(s=>t(s?{state:"in",me:s}:{state:"out"}),s=>t({state:"out",error:s}))},[o]),E(()=>{let s=()=>{location.hash.startsWith("#code=")&&r(i=>i+
1)};return addEventListener("hashchange",s),()=>removeEventListener("hashchange",s)},[]),e.state){case"asking":return n("main",{class:"signin",children:n(se,{})});case"\
out":return n(ko,{error:e.error,onDone:s=>t({state:"in",me:s})},o);case"in":return n(dc,{me:e.me,onSignOut:()=>t({state:"out"})})}}function dc({me:e,onSignOut:t}){
let o=po(),r=fo(),[s,i]=f(null),a=as().filter(d=>d.may(e)),l=a.find(d=>d.name===o.view)??a[0],c=async()=>{await Y(["sign-ins","current"]),t()};return E(()=>{document.
title=l?`${l.title} – Parley`:"Parley"},[l]),n("div",{class:"frame",children:[n("a",{class:"skip",href:"#content",onClick:d=>{d.preventDefault(),document.getElementById(
"content")?.focus()},children:"Skip to content"}),n("header",{class:"top",children:[n(go,{menu:r}),n("strong",{class:"brand",children:"Parley"}),n("span",{class:"\
here","aria-hidden":"true",children:l?.title}),n("span",{class:"who",title:"You're signed in with this name",children:e.name}),n(w,{look:"quiet",onPress:c,onError:i,
children:"Sign out"})]}),n(M,{error:s}),n("div",{class:"below",children:[n(ho,{all:a,view:l,menu:r}),n("main",{id:"content",class:"content",tabIndex:-1,children:l?
n(Xn,{children:n(l.show,{me:e,rest:l.name===o.view?o.rest:[]})},l.name):n("p",{class:"empty",children:"Your token can't see anything here. It needs the agent, o\
wn or read scope."})})]})]})}var Xn=class extends te{componentDidCatch(t){console.error(t),this.setState({error:t})}render(){return this.state.error?n(M,{error:this.
state.error,again:()=>this.setState({error:void 0})}):this.props.children}};var cs=document.getElementById("page");cs&&Yn(n(ls,{}),cs);
