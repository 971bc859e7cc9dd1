var $,Wn,bs,be,zt,lt,Hn,st,qn,Vt,jt,vs,Fe=Symbol.for("pv"),ct={},dt=[],ws=/^m(i|n|o|s|text|space)$/,Kt=Array.isArray,zn=dt.slice,xe=Object.assign;function Se(e){
e&&e.parentNode&&e.remove()}function it(e,t,o,r,s){var i={type:e,props:t,key:o,ref:r,__k:null,__:null,__b:0,__e:null,__c:null,constructor:Fe,__v:s||++Wn,__i:-1,__u:0};return!s&&$.vnode&&$.
vnode(i),i}function g(e){return e.children}function ne(e,t){this.props=e,this.context=t,this.__g=0}function ve(e,t){if(t==null)return e.__&&ve(e.__,e.__i+1);for(var o;t<e.
__k.length;t++)if((o=e.__k[t])&&o.__e)return o.__e;return typeof e.type!="function"||e.props.__P?null:ve(e)}function ys(e){var t,o=e.__v,r=o.__e,s=[],i=[],a=e.__P;
a&&((t=xe({constructor:Fe},o)).__v=o.__v+1,$.vnode&&$.vnode(t),Yt(a,t,o,e.__n,a.namespaceURI,32&o.__u?[r]:null,s,r||ve(o),32&o.__u,i),t.__v=o.__v,t.__.__k[t.__i]=
t,Zn(s,t,i),o.__=o.__e=null,t.__e!=r&&jn(t))}function jn(e){if((e=e.__)&&e.__c&&!e.props.__P)return e.__e=null,e.__k.some(function(t){return t&&(e.__e=t.__e)}),
jn(e)}function Fn(e){(8&e.__g||(e.__g|=8,be.push(e),lt++))&&zt==$.debounceRendering||((zt=$.debounceRendering)||queueMicrotask)(Vn)}function Vn(){try{for(var e,
t=1;be.length;)be.length>t&&be.sort(Hn),e=be.shift(),t=be.length,8&e.__g&&ys(e)}finally{(lt=be.length)&&(zt||queueMicrotask)(Vn)}}function Kn(e,t,o,r,s,i,a,l,c,d,u){
var h,f,m,b,w,_,P=r.__k||dt,x=t.length;for(c=ks(o,t,P,c,x),h=0;h<x;h++)(m=o.__k[h])!=null&&(f=~m.__i&&P[m.__i]||ct,m.__i=h,_=Yt(e,m,f,s,i,a,l,c,d,u),b=m.__e,(f.
ref!=m.ref||8&f.__u)&&(f.ref&&Gt(f.ref,null,m,f),m.ref&&u.push(m.ref,m.__c||b,m)),w=w||b,4&m.__u?(c=Yn(m,c,e,!f.__v),f.__e&&(f.__e=null)):typeof m.type=="functi\
on"&&_!==void 0?c=_:b&&(c=b.nextSibling),m.__u&=-21);return o.__e=w,c}function ks(e,t,o,r,s){var i,a,l,c,d,u,h,f,m,b=o.length,w=b,_=0,P=0,x=e.__k=Array(s);for(i=
0;i<s;i++)(a=t[i])!=null&&typeof a!="boolean"&&typeof a!="function"?(typeof a!="object"||a.constructor===String?a=x[i]=it(null,a):Kt(a)?a=x[i]=it(g,{children:a}):
a.constructor===Fe&&a.__b?a=x[i]=it(a.type,a.props,a.key,a.ref,a.__v):x[i]=a,c=i+_,a.__=e,a.__b=e.__b+1,l=null,~(d=a.__i=_s(a,o,c,w))&&(w--,(l=o[d])&&(l.__u|=2)),
l&&l.__v?(a.__u|=16,d==c-1?_--:d==c+1?_++:d!=c&&(d>c?_--:_++,P=1)):(~d||(s>b?_--:s<b&&_++),typeof a.type!="function"&&(a.__u|=4))):x[i]=null;if(P){for(u=[],h=[],
i=0;i<s;i++)if((a=x[i])&&16&a.__u){for(_=0,f=u.length;_<f;)u[m=_+f>>1]<a.__i?_=m+1:f=m;u[_]=a.__i,h[i]=_+1}for(_=u.length;i--;)h[i]&&(h[i]==_?_--:x[i].__u|=4)}if(w)
for(i=0;i<b;i++)!(l=o[i])||2&l.__u||(l.__e==r&&(r=ve(l)),Zt(l,l));return r}function Yn(e,t,o,r){var s,i,a,l;if(typeof e.type=="function"){if(e.props.__P)return t;
if(s=e.__k)for(i=0;i<s.length;i++)s[i]&&(s[i].__=e,t=Yn(s[i],t,o,!1));return t}for(t&&!t.parentNode&&(t=ve(e))&&!t.parentNode&&(t=null),a=e.__e,l=t;l&&l.nodeType==
8;)l=l.nextSibling;for(a!=l&&(!r&&o.moveBefore&&a.parentNode?o.moveBefore(a,t):o.insertBefore(a,t||null)),t=a;(t=t&&t.nextSibling)&&t.nodeType==8&&!t.data.startsWith(
"$s"););return t}function _s(e,t,o,r){var s,i=e.key,a=e.type,l=t[o],c=l&&!(2&l.__u);if(l===null&&i==null||c&&i==l.key&&a==l.type)return o;if(r>(c?1:0)){for(s=o-1;s>=0;s--)if((l=
t[s])&&!(2&l.__u)&&i==l.key&&a==l.type)return s;for(s=o+1;s<t.length;s++)if((l=t[s])&&!(2&l.__u)&&i==l.key&&a==l.type)return s}return-1}function Un(e,t,o){o==null&&
(o=""),t[0]=="-"?e.setProperty(t,o):e[t]=o}function rt(e,t,o,r,s){var i,a;if(t=="style")if(typeof o=="string")e.style.cssText=o;else{if(typeof r=="string"&&(e.style.
cssText=r=""),r)for(t in r)o&&t in o||Un(e.style,t);if(o)for(t in o)r&&o[t]==r[t]||Un(e.style,t,o[t])}else if(t[0]=="o"&&t[1]=="n")typeof o!="function"&&(o=null),
typeof r!="function"&&(r=null),(e.__e||(e.__e={}))[t]=o,o&&r||(a=jt[t]||(jt[t]=Ss(t)),(e.__a||(e.__a={}))[t]=Vt,i=t!=(t=t.replace(qn,"$1")),(t=t.slice(2))[0]<"a"&&
(t=t.toLowerCase()),o?e.addEventListener(t,a,i):e.removeEventListener(t,a,i));else{if(s=="http://www.w3.org/2000/svg")t=t.replace(/xlink(H|:h)/,"h").replace(/sName$/,
"s");else if(t!="width"&&t!="height"&&t!="href"&&t!="list"&&t!="form"&&t!="tabIndex"&&t!="download"&&t!="rowSpan"&&t!="colSpan"&&t!="role"&&t!="popover"&&t in e)
try{return void(e[t]=o??"")}catch{}if(typeof o=="function")return;o==null||o===!1&&t[4]!="-"?e.removeAttribute(t):e.setAttribute(t,t=="popover"&&o==1?"":o)}}function Ss(e){
return function(t){var o=this.__e;if(o){if(o=o[e],t[st]==null)t[st]=Vt++;else if(t[st]<this.__a[e])return;return o($.event?$.event(t):t)}}}function Yt(e,t,o,r,s,i,a,l,c,d){
var u,h,f,m,b,w,_,P,x,U,I,Ce,Rn,ot,ke,In,he,_e,me=t.type;if(t.constructor!==Fe)return null;128&o.__u&&(c=32&o.__u,u=o.__c.__z)&&(t.__u|=c,h=i=[],u.nodeType==8?l=
at(u,i):i.push(u),l=i[0]||l),(u=$.__b)&&u(t);e:if(typeof me=="function"){f=a.length;try{if(P=t.props,x=(u=me.prototype)&&u.render,U=(u=me.contextType)&&r[u.__c],
I=u?U?U.props.value:u.__:r,(m=o.__c)?(t.__c=m,2&m.__g&&(m.__g|=1)):(x?t.__c=m=new me(P,I):(t.__c=m=new ne(P,I),m.constructor=me,m.render=Ts),U&&U.sub(m),m.state||
(m.state={}),m.__n=r,m.__g|=8,m.__h=[],m.__k=[]),x&&(m.__s||(m.__s=m.state),me.getDerivedStateFromProps&&(m.__s==m.state&&(m.__s=xe({},m.__s)),xe(m.__s,me.getDerivedStateFromProps(
P,m.__s)))),b=m.props,w=m.state,m.__v=t,o.__c){if(P!==b&&x&&!me.getDerivedStateFromProps&&m.componentWillReceiveProps&&m.componentWillReceiveProps(P,I),t.__v==o.
__v&&!(8&m.__g)||!(4&m.__g)&&m.shouldComponentUpdate&&m.shouldComponentUpdate(P,m.__s,I)===!1){t.__v!=o.__v&&(m.props=P,m.state=m.__s,m.__g&=-9),t.__e=o.__e,t.__k=
o.__k,t.__k.some(function(ie){ie&&(ie.__=t)}),dt.push.apply(m.__h,m.__k),m.__k=[],m.__h.length&&a.push(m),l=ve(o);break e}m.componentWillUpdate&&m.componentWillUpdate(
P,m.__s,I),x&&m.componentDidUpdate&&m.__h.push(function(){m.componentDidUpdate(b,w,_)})}else x&&!me.getDerivedStateFromProps&&m.componentWillMount&&m.componentWillMount(),
x&&m.componentDidMount&&m.__h.push(m.componentDidMount);m.context=I,m.props=P,m.__P=e,m.__g&=-5,Ce=$.__r,Rn=x?25:0;do m.__g&=-9,Ce&&Ce(t),u=m.render(m.props,m.state=
m.__s,m.context);while(8&m.__g&&++Rn<25);x&&(dt.push.apply(m.__h,m.__k),m.__k=[]),m.state=m.__s,m.getChildContext&&(r=xe({},r,m.getChildContext())),x&&o.__c&&m.
getSnapshotBeforeUpdate&&(_=m.getSnapshotBeforeUpdate(b,w)),ot=u&&u.type===g&&u.key==null?u.props.children:u,P.__P&&(u=l,s=(e=P.__P).namespaceURI,c=i=null,o.props&&
o.props.__P!=e&&(o.__k.some(function(ie){ie&&Zt(ie,ie)}),o.__k=null),l=o.__k?ve(o,0):null),l=Kn(e,Kt(ot)?ot:[ot],t,o,r,s,i,a,l,c,d),P.__P&&(t.__e=null,l=u),t.__u&=
-161,h&&h.some(Se),m.__h.length&&a.push(m),1&m.__g&&(m.__g&=-4)}catch(ie){if(a.length=f,t.__v=null,c||i)if(ie&&ie.then){if(t.__u|=128|c,i){for(~(he=i.indexOf(l||
void 0))||(he=i.length);(_e=i[he-1])&&_e.nodeType==8;)he--;for(;he<i.length;he++)if(_e=i[he])if(i[he]=null,ke){if(_e==In)break}else{if(_e.nodeType!=8)break;_e.data.
startsWith("$s")&&(In=at(ke=_e))}}if(!ke){for(;l&&l.nodeType==8&&l.nextSibling;)l=l.nextSibling;ke=l}(u=at(ke=t.__c.__z||(t.__c.__z=ke)))?(t.__e=ke,l=u):t.__e=l,
l=l&&l.nextSibling}else i&&i.some(Se);else t.__e=o.__e;t.__k||(t.__k=o.__k||[]),ie&&ie.then||Gn(t),$.__e(ie,t,o)}}else l=t.__e=xs(o.__e,t,o,r,s,i,a,c,d,e);return(u=
$.diffed)&&u(t),l}function at(e,t){if(e&&e.nodeType==8&&e.data.startsWith("$s"))for(var o=1;e=e.nextSibling;){if(e.nodeType==8){if(e.data.startsWith("$s"))o++;else if(e.
data.startsWith("/$s")&&!--o)return e}t&&t.push(e)}}function Gn(e){e&&(e.__c&&(e.__c.__g|=4),e.__k&&e.__k.some(Gn))}function Zn(e,t,o){for(var r=0;r<o.length;)Gt(
o[r++],o[r++],o[r++]);$.__c&&$.__c(t,e),e.some(function(s){try{e=s.__h,s.__h=[],e.some(function(i){i.call(s)})}catch(i){$.__e(i,s.__v)}})}function xs(e,t,o,r,s,i,a,l,c,d){
var u,h,f,m,b,w,_,P,x=o.props||ct,U=t.props,I=t.type;if(I=="svg"?s="http://www.w3.org/2000/svg":I=="math"?s="http://www.w3.org/1998/Math/MathML":s||(s="http://w\
ww.w3.org/1999/xhtml"),i){for(u=0;u<i.length;u++)if((b=i[u])&&(I?b.localName==I:b.nodeType==3)){e=b,i[u]=null;break}}if(!e){if(P=d.ownerDocument||document,!I)return P.
createTextNode(U);e=P.createElementNS(s,I,U.is?U:d),l&&($.__m&&$.__m(t,i),l=!1),i=null}if(I){if(d=I=="template"&&e.content||e,i=I=="textarea"&&U.defaultValue!=null?
null:i&&zn.call(d.childNodes),!l&&i)for(x={},u=0;u<e.attributes.length;u++)x[(b=e.attributes[u]).name]=b.value;for(u in x)b=x[u],u=="dangerouslySetInnerHTML"?f=
b:u=="children"||u in U||u=="value"&&"defaultValue"in U||u=="checked"&&"defaultChecked"in U||rt(e,u,null,b,s);for(u in U)b=U[u],u=="children"?m=b:u=="dangerousl\
ySetInnerHTML"?h=b:u=="value"?w=b:u=="checked"?_=b:l&&typeof b!="function"||x[u]===b||rt(e,u,b,x[u],s);h?(l||f&&(h.__html==f.__html||h.__html==e.innerHTML)||(e.
innerHTML=h.__html),t.__k=[]):(f&&(e.textContent=""),(I=="foreignObject"||s=="http://www.w3.org/1998/Math/MathML"&&ws.test(I))&&(s="http://www.w3.org/1999/xhtml"),
Kn(d,Kt(m)?m:[m],t,o,r,s,i,a,i?i[0]:o.__k&&ve(o,0),l,c),i&&i.some(Se)),l&&I!="textarea"||(u="value",I=="progress"&&w==null?e.removeAttribute(u):w==null||w===e[u]&&
(I!="progress"||w)||rt(e,u,w,x[u],s),u="checked",_!=null&&_!=e[u]&&rt(e,u,_,x[u],s))}else x===U||l&&e.data==U||(e.data=U);return e}function Gt(e,t,o,r){try{typeof e==
"function"?t?t.__x=e(t)||1:r&&(r=r.__c||r.__e)&&(t=r.__x)&&(r.__x=null,typeof t=="function"?t():e(null)):e.current=t}catch(s){$.__e(s,o)}}function Zt(e,t,o){var r,
s,i,a;if($.unmount&&$.unmount(e),!(r=e.ref)||r.current&&r.current!=e.__e||Gt(r,null,t,e),r=e.__c){if(r.componentWillUnmount)try{r.componentWillUnmount()}catch(l){
$.__e(l,t)}r.__P=r.__n=null}if(r=e.__k)for(a=0;a<r.length;a++)r[a]&&Zt(r[a],t,typeof e.type!="function"||o&&!e.props.__P);!o&&(r=e.__c)&&(r=r.__z)&&(s=at(r,i=[]))&&
(r==e.__e&&i.some(Se),Se(s),Se(r)),o||Se(e.__e),e.__e=e.__c=e.__=null}function Ts(e,t,o){return this.constructor(e,o)}function Qn(e,t){var o,r,s,i;$.__&&$.__(e,
t),t.nodeType==9&&(t=t.documentElement),r=(o=e&&32&e.__u)?null:t.__k,t.__k=it(g,{children:[e]}),s=[],i=[],Yt(t,t.__k,r||ct,ct,t.namespaceURI,r?null:t.firstChild?
zn.call(t.childNodes):null,s,r?r.__e:t.firstChild,o,i),Zn(s,t.__k,i),t.__k.props.children=null}$={__e:function(e,t,o,r){for(var s,i,a;t=t.__;)if((s=t.__c)&&!(1&s.__g)){s.__g|=4;try{if((a=(i=s.constructor)&&i.getDerivedStateFromError)&&s.setState(i.getDerivedStateFromError(
e)),s.componentDidCatch&&(s.componentDidCatch(e,r||{}),a=1),a&&8&s.__g)return void(s.__g|=2)}catch(l){e=l}}throw lt=0,e}},Wn=0,bs=function(e){return e!=null&&e.
constructor===Fe},ne.prototype.setState=function(e,t){var o=this.__s;o&&o!=this.state||(o=this.__s=xe({},this.state)),typeof e=="function"&&(e=e(xe({},o),this.props)),
e&&(xe(o,e),this.__v&&(t&&this.__k.push(t),Fn(this)))},ne.prototype.forceUpdate=function(e){this.__v&&(this.__g|=4,e&&this.__h.push(e),Fn(this))},ne.prototype.render=
g,be=[],lt=0,Hn=function(e,t){return e.__v.__b-t.__v.__b},st=Symbol(),qn=/(PointerCapture)$|Capture$/i,Vt=0,jt={},vs=0;var Ae,q,Qt,eo,en=Object.is,ut=0,co=[],tn=[],W=$,to=W.__b,no=W.__r,oo=W.diffed,ro=W.__c,so=W.unmount,io=W.__;function mt(e,t){W.__h&&W.__h(q,e,ut||t),ut=0;var o=q.
__H||(q.__H={__:[],__h:[]});return e>=o.__.length&&o.__.push({}),o.__[e]}function p(e){return ut=1,Es(uo,e)}function Es(e,t,o){var r=mt(Ae++,2);if(r.t=e,!r.__c&&
(r.__=[o?o(t):uo(void 0,t),function(i){var a=(r.__N||r.__)[0],l=r.t(a,i);en(a,l)||(r.__N=[l,r.__[1]],r.__c.setState({}))}],r.__c=q,!q.__f)){q.__f=!0;var s=q.shouldComponentUpdate;
q.shouldComponentUpdate=function(i,a,l){var c=this.__H;if(!c)return!0;var d=!1,u=this.props!=i;if(c.__.some(function(f){f.__N&&(d=!0,en(f.__[0],f.__N[0])||(u=!0))}),
s){var h=s.call(this,i,a,l);return d?h||u:h}return!d||u}}return r.__}function E(e,t){var o=mt(Ae++,3);!W.__s&&on(o.__H,t)&&(o.__P=!0,o.__=e,o.u=t,q.__H.__h.push(
o))}function pe(e,t){var o=mt(Ae++,4);!W.__s&&on(o.__H,t)&&(o.__P=!1,o.__=e,o.u=t,q.__h.push(o))}function J(e){return ut=5,Ps(function(){return{current:e}},[])}function Ps(e,t){var o=mt(Ae++,7);return on(o.__H,t)&&(o.__=e(),o.__H=t),o.__}function Cs(){var e;do{for(;e=tn.shift();)try{Ue(e)}catch(o){W.__e(o,{__:(e=e.__P)&&e.__v})}for(;e=co.shift();){var t=e.__H;if(e.__P&&t)try{t.__h.some(Ue),t.__h.
some(nn),t.__h=[]}catch(o){t.__h=[],W.__e(o,e.__v)}}}while(tn.length)}W.__b=function(e){q=null,to&&to(e)},W.__=function(e,t){e&&t.__k&&t.__k.__m&&(e.__m=t.__k.__m),
io&&io(e,t)},W.__r=function(e){no&&no(e),Ae=0;var t=(q=e.__c).__H;t&&(Qt==q?q.__h=[]:(t.__h.some(Ue),t.__h.some(nn),Ae=0),t.__h=[],t.__.some(function(o){o.__N&&
(o.__=o.__N),o.u=o.__N=void 0})),Qt=q},W.diffed=function(e){oo&&oo(e);var t=e.__c;t&&t.__H&&(t.__H.__h.length&&lo(co.push(t)),t.__H.__.some(function(o){o.u&&(o.
__H=o.u)})),Qt=q=null},W.__c=function(e,t){t.some(function(o){try{o.__h.some(Ue),o.__h=o.__h.filter(function(r){return!r.__||nn(r)})}catch(r){o.__h=[function(){
throw r}]}}),ro&&ro(e,t)},W.unmount=function(e){so&&so(e);var t,o,r=e.__c;r&&r.__H&&(r.__H.__.some(function(s){try{if(s.__P&&s.__c){if(o===void 0){for(o=e.__;o&&
(!o.__c||!o.__c.__P);)o=o.__;o=o&&o.__c}s.__P=o,lo(tn.push(s))}else Ue(s)}catch(i){t=i}}),r.__H=void 0,t&&W.__e(t,r.__v))};var ao=typeof requestAnimationFrame==
"function";function As(e){var t,o=function(){clearTimeout(r),ao&&cancelAnimationFrame(t),setTimeout(e)},r=setTimeout(o,35);ao&&(t=requestAnimationFrame(o))}function lo(e){
e!=1&&eo==W.requestAnimationFrame||((eo=W.requestAnimationFrame)||As)(Cs)}function Ue(e){var t=q,o=e.__c;typeof o=="function"&&(e.__c=void 0,o()),q=t}function nn(e){
var t=q;e.__c=e.__(),q=t}function on(e,t){return!e||e.length!=t.length||t.some(function(o,r){return!en(o,e[r])})}function uo(e,t){return typeof t=="function"?t(
e):t}var Y=class extends Error{constructor(o,r,s,i=0){super(s);this.status=o;this.code=r;this.retryAfter=i}status;code;retryAfter},mo=()=>{};function po(e){mo=e}function ee(e,t={}){
let o=new URLSearchParams;for(let[s,i]of Object.entries(t))i!==void 0&&i!==""&&o.set(s,String(i));let r="/v1/"+e.map(encodeURIComponent).join("/");return o.size>
0?r+"?"+o.toString():r}function k(e,t={},o){return We("GET",ee(e,t),void 0,{},o)}function H(e,t={},o){return We("POST",ee(e),t,o?{"Idempotency-Key":o}:{})}function pt(e,t){
return We("PATCH",ee(e),t)}function G(e,t){return We("DELETE",ee(e),void 0,t?{"If-Match":`"${t}"`}:{})}function fo(e,t,o){return We("PUT",ee(e),t,{"If-Match":`"${o}\
"`})}async function We(e,t,o,r={},s){let i={...r};e!=="GET"&&(i["Parley-Page"]="1"),o!==void 0&&(i["Content-Type"]="application/json");let a={method:e,headers:i,
credentials:"same-origin",redirect:"error"};o!==void 0&&(a.body=JSON.stringify(o)),s&&(a.signal=s);let l=await He(t,a);if(!l.ok)throw await Te(l);let c=await l.
text();return c?JSON.parse(c):void 0}async function He(e,t){try{return await fetch(e,{cache:"no-store",...t})}catch(o){throw t.signal?.aborted?o:new Y(0,"unreac\
hable","Can't reach the server. Check that parley serve is running.")}}async function Te(e){let t="http_"+e.status,o=`The server responded with status ${e.status}\
.`;try{let r=await e.json();t=r.error?.code||t,o=r.error?.message||o}catch{}return e.status===401&&mo(),new Y(e.status,t,o,Number(e.headers.get("Retry-After"))||
0)}function Je(e){let t=e instanceof Error?e.message:String(e);return t.charAt(0).toUpperCase()+t.slice(1)}function go(e){let[t="",...o]=e.replace(/^#?\/?/,"").split("/");try{return{view:decodeURIComponent(t),rest:o.map(decodeURIComponent)}}catch{return{view:"",rest:[]}}}
function X(e,...t){return"#/"+[e,...t].map(encodeURIComponent).join("/")}function Me(e,...t){location.hash=X(e,...t)}function ho(){let[e,t]=p(()=>go(location.hash));
return pe(()=>{let o=()=>t(go(location.hash));return addEventListener("hashchange",o),()=>removeEventListener("hashchange",o)},[]),e}var Js=Symbol.for("pv"),Ms=0;function n(e,t,o,r,s,i){t||(t={});var a,l,c=t;if("ref"in c&&typeof e!="function")for(l in c={},t)l=="ref"?a=t[l]:c[l]=t[l];var d={type:e,props:c,key:o,ref:a,__k:null,
__:null,__b:0,__e:null,__c:null,constructor:Js,__v:--Ms,__i:-1,__u:0};return(s||i)&&(d.__source=s,d.__self=i),$.vnode&&$.vnode(d),d}function bo(){let[e,t]=p(!1),[o,r]=p(0),s=()=>t(!1);return E(()=>{if(!e)return;let i=l=>{l.target instanceof Element&&!l.target.closest("#views, .top")&&s()},a=l=>{
l.key==="Escape"&&(s(),document.querySelector(".menu-button")?.focus())};return addEventListener("pointerdown",i),addEventListener("focusin",i),addEventListener(
"keydown",a),()=>{removeEventListener("pointerdown",i),removeEventListener("focusin",i),removeEventListener("keydown",a)}},[e]),{open:e,waiting:o,toggle:()=>t(!e),
close:s,tell:r}}function vo({menu:e}){return n("button",{type:"button",class:"button quiet menu-button","aria-expanded":e.open,"aria-controls":"views",onClick:e.
toggle,children:[n("svg",{class:"icon",viewBox:"0 0 24 24","aria-hidden":"true",focusable:"false",children:n("path",{d:"M4 6h16M4 12h16M4 18h16"})}),"Menu",e.waiting>
0&&!e.open&&n("span",{class:"badge warn",children:[e.waiting,n("span",{class:"away",children:" open requests"})]})]})}function Bs(e){let t=new Map;for(let o of e)
t.set(o.group,[...t.get(o.group)??[],o]);return[...t]}function wo({all:e,view:t,menu:o}){let r=J(null);E(()=>{r.current?.querySelector("[aria-current]")?.scrollIntoView(
{block:"nearest"})},[t]);let s=()=>{o.open&&(o.close(),document.getElementById("content")?.focus())};return n("nav",{ref:r,id:"views",class:"views"+(o.open?" op\
en":""),"aria-label":"Views",children:Bs(e).map(([i,a])=>{let l="views-"+i.toLowerCase();return n("div",{class:"views-group",children:[n("span",{id:l,class:"vie\
ws-title",children:i}),n("ul",{"aria-labelledby":l,children:a.map(c=>n("li",{children:n("a",{href:X(c.name),"aria-current":c===t?"page":void 0,onClick:s,children:[
c.title,c.beside&&n(c.beside,{tell:o.tell})]})},c.name))})]},i)})})}function y({children:e,onPress:t,look:o,disabled:r,label:s,onError:i}){let[a,l]=p(!1),c=async()=>{try{let d=t();if(!(d instanceof Promise))return;l(!0),await d}catch(d){
if(!i)throw d;i(d)}finally{l(!1)}};return n("button",{type:"button",class:"button "+(o??""),disabled:r||a,"aria-label":s,"aria-busy":a,onClick:()=>{c()},children:e})}
function M({error:e,again:t}){return e?n("div",{class:"note error",role:"alert",children:[n("span",{children:Je(e)}),t&&n(y,{look:"quiet",onPress:t,children:"Tr\
y again"})]}):null}function re({children:e}){return n("p",{class:"empty",children:e})}function se(){return n("p",{class:"empty",role:"status",children:"Loading…"})}
function z({label:e,columns:t,rows:o,id:r,empty:s}){return o.length===0?n(re,{children:s}):n("div",{class:"table",tabIndex:0,role:"region","aria-label":e,children:n(
"table",{children:[n("caption",{class:"away",children:e}),n("thead",{children:n("tr",{children:t.map(i=>n("th",{scope:"col",class:i.number?"number":"",children:i.
title},i.title))})}),n("tbody",{children:o.map(i=>n("tr",{children:t.map(a=>n("td",{class:a.number?"number":"","data-title":a.title,children:a.cell(i)},a.title))},
r(i)))})]})})}function K({of:e}){return e?n("a",{href:X("why",e),"aria-label":"Why? "+e,children:"Why?"}):null}function yo({label:e,children:t}){let o=J(null),r=()=>{
o.current&&(o.current.open=!1)};return E(()=>{let s=i=>{i.target instanceof Node&&!o.current?.contains(i.target)&&r()};return addEventListener("pointerdown",s),
()=>removeEventListener("pointerdown",s)},[]),n("details",{ref:o,class:"menu",onKeyDown:s=>{s.key!=="Escape"||!o.current?.open||(r(),o.current.querySelector("su\
mmary")?.focus())},children:[n("summary",{class:"button quiet","aria-label":e,title:e,children:"⋯"}),n("div",{class:"menu-items",onClick:r,children:t})]})}function fe({
title:e,children:t,confirm:o,danger:r,onConfirm:s,onClose:i}){let a=J(null),l=J(!1),[c,d]=p(null);return pe(()=>{let h=a.current;return h?.showModal(),()=>{l.current=
!0,h?.close()}},[]),n("dialog",{ref:a,class:"dialog","aria-labelledby":"dialog-title",onClose:()=>l.current||i(),children:[n("h2",{id:"dialog-title",children:e}),
n("div",{children:t}),n(M,{error:c}),n("div",{class:"actions",children:[n(y,{onPress:i,children:"Cancel"}),n(y,{look:r?"danger":"main",onPress:async()=>{await s(),
i()},onError:d,children:o})]})]})}function ce(){let e=J(null);return pe(()=>{let t=document.activeElement;return e.current?.scrollIntoView({block:"start"}),e.current?.
focus({preventScroll:!0}),()=>{t instanceof HTMLElement&&e.current?.contains(document.activeElement)&&t.focus()}},[]),e}function B(e,t){let[o,r]=p({}),[s,i]=p(0);
return E(()=>{let a=new AbortController;return e(a.signal).then(l=>a.signal.aborted||r({value:l}),l=>a.signal.aborted||r(c=>({...c,error:l}))),()=>a.abort()},[t,
s]),{...o,again:()=>i(a=>a+1)}}function ko(){let e=/^#code=([^&]+)$/.exec(location.hash);return e?.[1]?(history.replaceState(null,"",location.pathname),decodeURIComponent(e[1])):""}async function _o(e){
if(e)return So({code:e});try{return await k(["me"])}catch(t){if(t instanceof Y&&(t.status===401||t.status===404))return null;throw t}}function So(e){return H(["\
sign-ins"],e)}function Os(e){let t=/(?:#code=|^)([A-Z2-7]{26})$/.exec(e)?.[1];return t?{code:t}:{token:e}}function xo({error:e,onDone:t}){let[o,r]=p(""),[s,i]=p(
e),a=async()=>{let l=o.trim();l&&(i(null),t(await So(Os(l))))};return n("main",{class:"signin",children:[n("h1",{children:"Parley"}),n("p",{children:["Run ",n("\
code",{children:"parley ui"})," on the server. It opens this page and signs you in."]}),n(M,{error:s}),n("form",{onSubmit:l=>{l.preventDefault(),a().catch(i)},children:[
n("label",{for:"given",children:"Or paste the link that it prints, or a token"}),n("input",{id:"given",type:"password",autocomplete:"off",value:o,onInput:l=>r(l.
currentTarget.value)}),n(y,{look:"main",disabled:!o.trim(),onPress:a,onError:i,children:"Sign in"})]})]})}var To="en-US";function C(e){return e.toLocaleString(To)}function D(e,t){return C(e)+" "+qe(e,t)}function qe(e,t){return e===1?t:t+"s"}function te(e){return e===
0?"$0":Math.abs(e)<1e4?"$"+(e/1e6).toFixed(6).replace(/0+$/,""):sn(e,2)}function ze(e){return Math.abs(e)<1e4||e%1e4===0?te(e):sn(e,4)}function Eo(e){let t=2;for(let o of e)
o>0&&o<100?t=6:o>0&&o<1e4&&(t=Math.max(t,4));return o=>sn(o,t)}function sn(e,t){return"$"+(e/1e6).toLocaleString(To,{minimumFractionDigits:t,maximumFractionDigits:t})}
function j(e){return e<1024?D(e,"byte"):e<1<<20?(e/1024).toFixed(1)+" KB":(e/(1<<20)).toFixed(1)+" MB"}function Z(e){if(e<1e3)return Math.max(0,Math.round(e))+"\
 ms";let t=Math.round(e/1e3);return t<60?t+" s":t<3600?rn(t,60,"min",1,"s"):t<86400?rn(t,3600,"h",60,"min"):rn(t,86400,"d",3600,"h")}function rn(e,t,o,r,s){let i=Math.
floor(e%t/r);return Math.floor(e/t)+" "+o+(i>0?` ${i} ${s}`:"")}var Ls=366;function an(e,t,o){let r=[];for(let s=e;s<=t&&r.length<Ls;s+=o)r.push(s);return r}function ge(e){
return new Date(e).toISOString().slice(0,10)}function ft(e,t){return an(Date.parse(e),Date.parse(t),864e5).map(ge)}var Po=10,Xs=10<<20;function Co(e){let t=new Date,o=i=>String(i).padStart(2,"0"),s=`${`${t.getFullYear()}-${o(t.getMonth()+1)}-${o(t.getDate())}`}-${o(t.getHours())}${o(
t.getMinutes())}-${crypto.randomUUID().slice(0,4)}`;return["main","web",e.name,s].map(encodeURIComponent).join(":")}function je(e,t,o){return{key:Ao(),session:e,
text:t,files:o,state:"sending",id:"",problem:""}}var Ao=()=>"page-"+crypto.randomUUID(),Ds=5;async function Jo(e,t){e.state="sending",e.problem="",t();let o=e.files.
map(s=>({name:s.name,data:s.data})),r={to:"agent",session:e.session,text:e.text,...o.length>0&&{files:o}};for(let s=1;;s++)try{let i=await H(["messages"],e.operator?
{session:e.session,as:"operator",text:e.text}:Ns(r),e.key);e.id=i.id,e.state="sent",t();return}catch(i){let a=i instanceof Y?i:new Y(0,"broken",String(i));if(!(a.
status===0||a.status===429||a.status>=500)||s===Ds){e.state="refused",e.problem=a.message,t();return}await new Promise(c=>setTimeout(c,Math.min(Math.max(a.retryAfter*
1e3,400*2**s),8e3)))}}var Mo=1500,$s=12;async function Bo(e,t,o,r){for(let s=0;s<$s&&e.state==="sent";s++){if(await new Promise(i=>setTimeout(i,Math.min(Mo*1.5**
s,3e4))),r.aborted||o())return;try{let{destinations:i}=await k(["messages",e.id],{},r),a=i.find(l=>l.state==="failed");if(!a)continue;Object.assign(e,{state:"re\
fused",problem:a.error?.message??"It couldn't be delivered.",id:"",key:Ao()}),t()}catch{}}}var Oo=e=>!e.operator&&/^\s*\/[a-z]/i.test(e.text);async function Lo(e,t,o,r){
for(let s=0;e.state==="sent";s++){if(await new Promise(i=>setTimeout(i,Math.min(Mo*1.5**s,3e4))),r.aborted||o())return;try{let{destinations:i}=await k(["message\
s",e.id],{},r);if(!i.some(a=>a.state==="sent"))continue;e.state="done",t()}catch(i){if(i instanceof Y&&i.status===404)return}}}function Ns(e){let[t="",o]=e.session.
split(":");return o&&t!=="main"?{...e,to:"agent:"+decodeURIComponent(t)}:e}function ae(e){let[t="",o="",r="",s=""]=e.split(":").map(i=>{try{return decodeURIComponent(
i)}catch{return i}});return{agent:t,channel:o,chat:r,thread:s}}function we(e){let{channel:t,chat:o,thread:r}=ae(e);return t==="web"?r||"First session":[o,r].filter(
Boolean).join(" / ")||e}function Xo(e,t){if(!t.may.agent)return!1;let{channel:o,chat:r}=ae(e);return o==="web"&&r===t.name||o==="console"&&t.owner}function Do(e,t){
return t.may.admin&&!["","web","console","agent","webhook","heartbeat"].includes(ae(e).channel)}var ln={get:e=>sessionStorage.getItem("draft "+e)??"",set:(e,t)=>{
t.trim()?sessionStorage.setItem("draft "+e,t):sessionStorage.removeItem("draft "+e)}},Ve={get:e=>{try{return JSON.parse(sessionStorage.getItem("outbox "+e)??"[]").
map(o=>({...o,files:[],state:"sending",id:"",problem:""}))}catch{return[]}},set:(e,t)=>{let o=t.filter(r=>r.state==="sending"&&r.files.length===0).map(({key:r,session:s,
text:i,operator:a})=>({key:r,session:s,text:i,...a&&{operator:a}}));o.length>0?sessionStorage.setItem("outbox "+e,JSON.stringify(o)):sessionStorage.removeItem("\
outbox "+e)}};async function $o(e,t){let o=[...t];for(let r of e){if(o.length===Po)throw new Error(`You can attach up to ${Po} files to a message.`);if(o.reduce(
(l,c)=>l+c.size,r.size)>Xs)throw new Error("The files are too large. You can attach up to 10 MB to a message.");if(r.size===0)throw new Error(`The file ${r.name}\
 is empty.`);let i=await Is(r),a={name:Rs(r.name,o.length),size:r.size,data:i};/^image\/(png|jpeg|gif|webp)$/.test(r.type)&&(a.preview=URL.createObjectURL(r)),o.
push(a)}return o}function Rs(e,t){return e.replace(/[\p{C}/\\]/gu,"_").slice(-100)||`file-${t+1}`}function Is(e){return new Promise((t,o)=>{let r=new FileReader;
r.onload=()=>t(String(r.result).replace(/^[^,]*,/,"")),r.onerror=()=>o(new Error(`Can't read the file ${e.name}.`)),r.readAsDataURL(e)})}function gt({session:e,running:t,onSay:o,onStop:r}){let[s,i]=Ro(e),[a,l]=p([]),[c,d]=p(null),[u,h]=p(!1),f=J(null),m=J(null);E(()=>{matchMedia("(pointer: fine)").
matches&&f.current?.focus()},[]);let b=_=>{d(null),$o(_,a).then(l,d)},w=()=>{!s.trim()&&a.length===0||(o(s,a),i(""),l([]),d(null),f.current?.focus())};return n(
"form",{class:"composer"+(u?" over":""),"aria-label":"Write a message",onSubmit:_=>{_.preventDefault(),w()},onDragOver:_=>{_.preventDefault(),h(!0)},onDragLeave:()=>h(
!1),onDrop:_=>{_.preventDefault(),h(!1),b(_.dataTransfer?.files??[])},children:[n(M,{error:c}),n(Us,{files:a,onRemove:_=>l(a.filter(P=>P!==_))}),n("div",{class:"\
composer-row",children:[n("input",{ref:m,type:"file",multiple:!0,hidden:!0,onChange:_=>{b([..._.currentTarget.files??[]]),_.currentTarget.value=""}}),n(y,{look:"\
quiet",label:"Add files",onPress:()=>m.current?.click(),children:n(Fs,{})}),n(Io,{box:f,label:"Message",hint:"Message the agent",text:s,write:i,send:w,paste:b}),
t&&n(y,{look:"danger",onPress:r,children:"Stop"}),n(y,{look:"main",disabled:!s.trim()&&a.length===0,onPress:w,children:"Send"})]})]})}function No({session:e,channel:t,
onSay:o}){let[r,s]=Ro(e),i=()=>{r.trim()&&(o(r),s(""))};return n("form",{class:"composer operator","aria-label":"Answer as the operator",onSubmit:a=>{a.preventDefault(),
i()},children:[n("p",{id:"operator-note",class:"operator-note",children:[n("strong",{children:"Answer as the operator."})," People on ",t," see your message, ma\
rked as yours. The agent knows of it, and doesn't answer it."]}),n("div",{class:"composer-row",children:[n(Io,{label:"Answer as the operator",hint:"Answer as th\
e operator",about:"operator-note",text:r,write:s,send:i}),n(y,{look:"main",disabled:!r.trim(),onPress:i,children:"Send as operator"})]})]})}function Ro(e){let[t,
o]=p(()=>ln.get(e));return[t,s=>{o(s),ln.set(e,s)}]}function Io({label:e,hint:t,about:o,text:r,write:s,send:i,paste:a,box:l}){return n("textarea",{ref:l,rows:Math.
min(r.split(`
`).length,12),"aria-label":e,"aria-describedby":o,placeholder:t,value:r,onInput:c=>s(c.currentTarget.value),onKeyDown:c=>{c.key!=="Enter"||c.shiftKey||c.isComposing||
(c.preventDefault(),i())},onPaste:c=>{let d=[...c.clipboardData?.files??[]];!a||d.length===0||(c.preventDefault(),a(d))}})}function Fs(){return n("svg",{class:"\
icon",viewBox:"0 0 24 24","aria-hidden":"true",children:n("path",{d:"M20 11.5 12 19.5a5 5 0 0 1-7-7l8.5-8.5a3.4 3.4 0 0 1 4.8 4.8l-8.4 8.4a1.7 1.7 0 0 1-2.4-2.4\
l7.6-7.6"})})}function Us({files:e,onRemove:t}){return e.length===0?null:n("ul",{class:"files","aria-label":"Files to send",children:e.map((o,r)=>n("li",{class:"\
file",children:[o.preview&&n("img",{src:o.preview,alt:""}),n("span",{children:o.name})," ",n("span",{class:"faint",children:j(o.size)}),n("button",{type:"button",
class:"button quiet","aria-label":"Remove "+o.name,onClick:()=>t(o),children:"×"})]},r))})}var Ws=/(?![ \n\t])[\p{C}\p{Z}\p{Default_Ignorable_Code_Point}\p{Variation_Selector}\u2800\ufffc\u{16fe4}]/gu;function v(e){return e.replace(Ws,t=>{let o=t.codePointAt(
0)??0;return o>65535?"\\U"+o.toString(16).padStart(8,"0"):"\\u"+o.toString(16).padStart(4,"0")})}var cn=6e4,dn=60*cn,un=24*dn;function Hs(e){let t=e.getTime()-Date.now(),o=Math.abs(t);return o<1e4?"just now":o>30*un?e.toLocaleDateString():t<0?Fo(o)+" ago":"\
in "+Fo(o)}function Fo(e){if(e<cn)return Z(e);if(e<dn)return Z(e-e%cn);if(e<un)return Z(e-e%dn);let t=Math.round(e/un);return t===1?"1 day":t+" days"}function Uo(e){
let[,t]=p(0);E(()=>{let o=setInterval(()=>t(r=>r+1),e*1e3);return()=>clearInterval(o)},[e])}function mn({at:e,says:t}){let o=new Date(e);return Number.isNaN(o.getTime())?
n("span",{children:e}):n("time",{dateTime:e,title:o.toLocaleString(),children:t(o)})}function T({at:e}){return Uo(10),n(mn,{at:e,says:Hs})}function de({at:e}){return Uo(
1),n(mn,{at:e,says:t=>Z(Math.max(1e3,Date.now()-t.getTime()))})}function ht({at:e}){return n(mn,{at:e,says:t=>t.toLocaleTimeString()})}function O({title:e,about:t,done:o,children:r}){let s=J(null),i=J(0);return E(()=>{!o?.said||o.turn===i.current||document.activeElement!==document.body||(i.current=
o.turn,s.current?.focus({preventScroll:!0}))}),n("div",{class:"page sheet",children:[n("h1",{ref:s,tabIndex:-1,children:e}),t&&n("p",{class:"about",children:t}),
o&&n(qs,{outcome:o}),r]})}function Q(){let[e,t]=p({said:"",error:null,turn:0});return{...e,say:r=>{t(s=>({said:"",error:null,turn:s.turn})),setTimeout(()=>t(s=>({
said:r,error:null,turn:s.turn+1})),50)},fail:r=>t(s=>({said:"",error:r,turn:s.turn}))}}function qs({outcome:e}){return n(g,{children:[n("p",{class:e.said?"note \
done":"away",role:"status",children:e.said}),n(M,{error:e.error})]})}function L({value:e,error:t,again:o}){return t?n(M,{error:t,again:o}):e===void 0?n(se,{}):null}
function V({read:e,rows:t,...o}){return n(g,{children:[n(L,{...e}),e.value!==void 0&&n(z,{...o,rows:t(e.value)})]})}function oe(e){let[t,o]=p(null);if(t===null)
return{ask:o,dialog:null};let{title:r,confirm:s,text:i,act:a}=e(t);return{ask:o,dialog:n(fe,{title:r,confirm:s,danger:!0,onConfirm:a,onClose:()=>o(null),children:i})}}
function bt({label:e,value:t,set:o,children:r}){return n("form",{class:"filters",onSubmit:s=>s.preventDefault(),children:[n("label",{class:"long",children:[e,n(
"input",{type:"search",value:t,spellcheck:!1,onInput:s=>o(s.currentTarget.value)})]}),r]})}function vt(e,...t){let o=t.join(`
`).toLowerCase();return e.toLowerCase().split(/\s+/).every(r=>o.includes(r))}function N({title:e,children:t,wide:o,box:r}){let s="block-"+e.toLowerCase().replace(
/[^a-z]+/g,"-");return n("section",{ref:r,class:"block"+(o?" wide":""),"aria-labelledby":s,tabIndex:r?-1:void 0,children:[n("h2",{id:s,children:e}),t]})}function Be({
title:e,children:t,close:o}){let r=ce();return n(N,{title:e,wide:!0,box:r,children:[t,n("div",{class:"after",children:n(y,{onPress:o,children:"Close"})})]})}function Oe({
after:e,next:t,go:o}){return!e&&!t?null:n("div",{class:"after",children:[e&&n(y,{onPress:()=>o(""),children:"First page"}),t&&n(y,{onPress:()=>o(t),children:"Ne\
xt page"})]})}function S({of:e}){return e?n("span",{class:"name",children:v(e)}):null}function F({of:e}){return e?n("a",{class:"name",href:X("chat",e),children:v(
e)}):null}function wt({text:e}){let t=v(e).split("`");return t.length%2===0?n(g,{children:t.join("`")}):n(g,{children:t.map((o,r)=>r%2===1?n("code",{children:o},
r):o)})}function Ke({of:e,label:t,above:o}){return n("div",{class:"preview",children:[o&&n("h3",{children:o}),n("pre",{tabIndex:0,role:"region","aria-label":t,children:n(
"span",{class:"preview-line",children:v(e)})})]})}function yt({of:e,label:t}){return n(Ke,{of:JSON.stringify(e,null,2),label:t})}function kt({spent:e,kept:t=0,look:o}){
return n("svg",{class:"bar "+o,viewBox:"0 0 100 1",preserveAspectRatio:"none","aria-hidden":"true",focusable:"false",children:[n("rect",{class:"all",width:"100",
height:"1"}),t>0&&n("rect",{class:"kept",width:Math.min(100,e+t),height:"1"}),n("rect",{class:"spent",width:Math.min(100,e),height:"1"})]})}function A({look:e,children:t}){
return n("span",{class:"badge "+(e??""),children:t})}var Wo=["reset","turn_start","parked","turn_complete","turn_error","ask","ask_resolved","dead_letter","job","job_output","task","channel"],zs=2e4,Ho="parley-eve\
nts",pn=class{followers=new Set;tabs=new BroadcastChannel(Ho);leave;constructor(){this.tabs.onmessage=t=>{let o=Wo.find(r=>r===t.data?.kind);o&&this.hear({...t.
data,kind:o})}}follow(t){return this.followers.add(t),this.followers.size===1&&document.addEventListener("visibilitychange",this.look),this.look(),()=>{this.followers.
delete(t),!(this.followers.size>0)&&(document.removeEventListener("visibilitychange",this.look),this.look())}}look=()=>{let t=this.followers.size>0&&!document.hidden;
t&&!this.leave?(this.leave=new AbortController,this.lead(this.leave.signal)):t||(this.leave?.abort(),this.leave=void 0)};async lead(t){for(;!t.aborted;){try{await navigator.
locks.request(Ho,{signal:t},()=>this.stream(t))}catch(o){if(!t.aborted)throw o;return}t.aborted||await new Promise(o=>setTimeout(o,zs))}}stream(t){return new Promise(
o=>{let r=new EventSource(ee(["events"]));for(let s of Wo)r.addEventListener(s,i=>this.tell(s,i.data));r.addEventListener("error",()=>{r.readyState===EventSource.
CLOSED&&(this.tell("reset","{}"),o())}),t.addEventListener("abort",()=>{r.close(),o()})})}tell(t,o){let{session:r,id:s}=JSON.parse(o),i={kind:t,...r&&{session:r},
...s&&{id:s}};this.tabs.postMessage(i),this.hear(i)}hear(t){for(let o of[...this.followers])o(t)}},qo=new pn;function zo(e){return qo.follow(e)}function _t(e,t){
let o=J(t);o.current=t;let r=e.join(" ");E(()=>{if(!r)return;let s=new Set(["reset",...r.split(" ")]),i=0,a=qo.follow(({kind:l})=>{!s.has(l)||i||(i=setTimeout(()=>{
i=0,o.current()},250))});return()=>{a(),clearTimeout(i)}},[r])}var js=5;function R(e,t,o,r=[],s=0){let[i,a]=p({key:t}),[l,c]=p(0),d=J(e);d.current=e;let u=()=>c(b=>b+1),h=J(0),f=J(0);return _t(r,()=>{h.current||(h.current=setTimeout(
()=>{h.current=0,f.current=Date.now(),u()},Math.max(0,f.current+s-Date.now())))}),E(()=>()=>clearTimeout(h.current),[]),E(()=>{let b=new AbortController,w=!1,_=0,
P=async()=>{if(!(w||document.hidden)){w=!0,clearTimeout(_);try{let I=await d.current(b.signal);b.signal.aborted||a({key:t,value:I})}catch(I){b.signal.aborted||(a(
Ce=>Ce.key===t?{...Ce,error:I}:{key:t,error:I}),_=setTimeout(()=>{P()},Math.min(o,js)*1e3))}finally{w=!1}}};P();let x=setInterval(()=>{P()},o*1e3),U=()=>{P()};return document.
addEventListener("visibilitychange",U),()=>{b.abort(),clearInterval(x),clearTimeout(_),document.removeEventListener("visibilitychange",U)}},[t,o,l]),{...i.key===
t?i:{key:t},again:u}}var fn=10<<20,St=e=>/\.(png|jpe?g|gif|webp)$/i.test(e);function xt({session:e,name:t}){let o=B(r=>Vs(e,t,r),t);return E(()=>()=>{o.value&&URL.revokeObjectURL(o.
value)},[o.value]),n(g,{children:[n(L,{...o}),o.value&&n("img",{src:o.value,alt:`Picture ${v(t)}`})]})}async function Vs(e,t,o){let r=await He(ee(["sessions",e,
"files",t]),{signal:o});if(!r.ok)throw await Te(r);if(Number(r.headers.get("Content-Length"))>fn)throw await r.body?.cancel(),new Error("This picture is too lar\
ge to be shown here. You can download it.");let s=await r.arrayBuffer(),i=Ks(new Uint8Array(s));if(!i)throw new Error("This file isn't a picture that the page c\
an show. You can download it.");return URL.createObjectURL(new Blob([s],{type:i}))}function Ks(e){let t=String.fromCharCode(...e.subarray(0,12));return t.startsWith(
`PNG\r

`)?"image/png":t.startsWith("ÿØÿ")?"image/jpeg":/^GIF8[79]a/.test(t)?"image/gif":/^RIFF[^]{4}WEBP/.test(t)?"image/webp":""}var Ys=100;function jo({session:e,close:t}){let[{folder:o,after:r},s]=p({folder:"",after:""}),[i,a]=p(null),l=R(h=>k(["sessions",e,"files"],{folder:o,after:r,limit:Ys},
h),o+`
`+r,20,["turn_complete"]),c=ce(),d=h=>{a(null),s({folder:h,after:""}),c.current?.focus()},u=l.value;return n("section",{ref:c,class:"files-panel","aria-label":"\
Files of this session",tabIndex:-1,children:[n("div",{class:"between",children:[n(Gs,{folder:o,open:d}),n(y,{look:"quiet",onPress:t,label:"Close the files",children:"\
Close"})]}),n(L,{...l}),u?.files.length===0&&n("p",{class:"none",children:o||r?"No files here.":"This session has no files yet."}),n("ul",{class:"items",children:u?.
files.map(h=>n("li",{children:n(Zs,{session:e,file:h,open:d,look:a})},h.name))}),n(Oe,{after:r,next:u?.next,go:h=>s({folder:o,after:h})}),i&&n(Qs,{session:e,name:i.
name,close:()=>a(null)},i.name)]})}function Gs({folder:e,open:t}){let o=e?e.split("/"):[];return n("nav",{class:"trail","aria-label":"Folders",children:[n(y,{look:"\
quiet",disabled:!e,onPress:()=>t(""),children:"All files"}),o.map((r,s)=>n("span",{children:["/ ",n(y,{look:"quiet",disabled:s===o.length-1,onPress:()=>t(o.slice(
0,s+1).join("/")),children:v(r)})]},s))]})}function Zs({session:e,file:t,open:o,look:r}){let s=v(t.name.slice(t.name.lastIndexOf("/")+1));if(t.folder)return n("\
span",{children:n(y,{look:"quiet",onPress:()=>o(t.name),label:`Open the folder ${s}`,children:[s,"/"]})});let i=St(t.name)&&t.bytes<=fn;return n("div",{class:"f\
ile-line",children:[n("span",{class:"name",children:[s," ",n("span",{class:"faint",children:[j(t.bytes),t.changed&&n(g,{children:[", changed ",n(T,{at:t.changed})]})]})]}),
i&&n(y,{onPress:()=>r(t),label:`Show ${s}`,children:"Show"}),n("a",{class:"button",href:ee(["sessions",e,"files",t.name]),download:"","aria-label":`Download ${s}`,
children:"Download"})]})}function Qs({session:e,name:t,close:o}){let r=ce();return n("figure",{ref:r,class:"picture",tabIndex:-1,children:[n("figcaption",{class:"\
between",children:[n("span",{class:"name",children:v(t)})," ",n(y,{look:"quiet",onPress:o,label:"Close the picture",children:"Close"})]}),n(xt,{session:e,name:t})]})}var Tt=class{turns=[];spoken=[];asks=new Map;tasks=new Map;jobs=new Map;besides=0;ready=!1;apply(t,o){switch(t){case"snapshot":return this.replace(o);case"messa\
ge":{let r=o;return this.speak(Ko(r,r.delta??"",this.turns.at(-1)?.id??""))}}return this.take(t,o)?this.besides++:this.change(t,o),new Set}take(t,o){switch(t){case"\
tasks":return this.tasks=new Map(o.map(r=>[r.id,gn(this.tasks.get(r.id),r)])),!0;case"jobs":return this.jobs=new Map(o.map(r=>[r.id,Vo(this.jobs.get(r.id),r)])),
!0;case"task":{let r=o;return this.tasks.set(r.id,gn(this.tasks.get(r.id),r)),!0}case"job":{let r=o;return this.jobs.set(r.id,Vo(this.jobs.get(r.id),r)),!0}case"\
gone":return this.tasks.delete(o),this.jobs.delete(o),!0}return!1}besideOf(t){return[...this.tasks.values(),...this.jobs.values()].filter(o=>o.turn===t)}change(t,o){
switch(t){case"ask":this.ask(o);return;case"ask_resolved":this.resolve(o);return}if(!o.turn)return;let r=this.turn(o.turn);r.version++,t.startsWith("block_")?ti(
r,t,o):t.startsWith("tool_")?ni(r,t,o):ri(r,t,o)}turn(t){let o=this.turns.findLast(s=>s.id===t);if(o)return o;let r=Et(t);return this.turns.push(r),r}replace(t){
let o=new Map(this.turns.map(s=>[s.id,s]));this.turns=t.turns.map(s=>{let i=o.get(s.turn),a={...Et(s.turn),causes:s.causes,state:s.state};if(!i)return a;let{calls:l,
error:c,usage:d,compacted:u,version:h}=i;return{...a,calls:l,compacted:u,...c&&{error:c},...d&&{usage:d},version:h+1}});for(let s of t.blocks){let i=this.turns.
find(a=>a.id===s.turn);i&&Ye(i,{...hn(s),text:s.text??"",done:s.done??!0})}let r=this.leaveAside();this.spoken=ei(this.spoken,(t.messages??[]).map(s=>Ko(s,s.text??
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
return this.turns.findLast(t=>t.state==="running"||t.state==="parked")}};function gn(e,t){return e?.ended&&!t.ended?e:t}function Vo(e,t){let o=e&&!t.ended&&t.printed<
e.printed?e:gn(e,t);return o.output!==void 0||e?.output===void 0||e.printed!==o.printed?o:{...o,output:e.output}}function Et(e){return{id:e,causes:[],state:"run\
ning",blocks:[],calls:new Map,compacted:0,version:0}}function Ko(e,t,o){let r=e.kind==="operator"&&{operator:{name:e.name??"",cut:e.cut??!1}};return{id:e.call??
"",turn:e.turn??"",text:t,after:o,...r,...e.command&&{command:e.command}}}function ei(e,t){let o=new Set(t.map(i=>i.id)),r=new Map,s="";for(let i of e)o.has(i.id)?
s=i.id:i.operator||r.set(s,[...r.get(s)??[],i]);return[...r.get("")??[],...t.flatMap(i=>[i,...r.get(i.id)??[]])]}function hn(e){return{number:e.block??0,kind:e.
kind??"text",text:"",tool:e.tool??"",call:e.call??"",...e.input!==void 0&&{input:e.input},failed:e.is_error??!1,cut:e.cut??!1,cause:e.cause??"",name:e.name??"",
done:!1,late:!1}}function Ye(e,t){let o=e.blocks.findIndex(r=>r.number>=t.number);o<0?e.blocks.push(t):e.blocks[o]?.number===t.number?e.blocks[o]=t:e.blocks.splice(
o,0,t)}function ti(e,t,o){let r=o.block??0;if(t==="block_reset"){e.blocks=e.blocks.filter(i=>i.number<r);return}if(delete e.retry,t==="block_start"){Ye(e,hn(o));
return}let s=e.blocks.find(i=>i.number===r);if(s||(s={...hn(o),late:!0},Ye(e,s)),t==="block_delta"){s.text+=o.delta??"";return}s.done=!0,o.input!==void 0&&(s.input=
o.input),s.call=o.call||s.call,s.tool=o.tool||s.tool,s.failed||=o.is_error??!1,s.cut||=o.cut??!1}function ni(e,t,o){let r=o.call??"",s=e.calls.get(r);if(s||(s={
id:r,tool:o.tool??"",brief:"",progress:"",state:"running"},e.calls.set(r,s)),!e.blocks.some(i=>i.call===r)){let i=e.blocks.find(a=>a.kind==="tool_use"&&a.call===
""&&a.tool===o.tool);i&&(i.call=r)}switch(t){case"tool_start":s.brief=o.delta??"",s.state="running";break;case"tool_progress":s.progress=(s.progress+(o.delta??"")+
`
`).slice(-oi);break;case"tool_end":s.state=o.error?"failed":"ended",o.error&&(s.error=o.error)}}var oi=2e4;function ri(e,t,o){switch(o.causes&&(e.causes=o.causes),
t){case"turn_start":e.state="running";break;case"parked":e.state="parked";break;case"turn_complete":Yo(e),e.state=e.state==="cancelled"?"cancelled":"done",delete e.
retry;break;case"turn_error":Yo(e),e.state=o.error?.code==="cancelled"?"cancelled":"failed",o.error&&(e.error=o.error),delete e.retry;break;case"retry":e.retry=
{attempt:o.attempt??2,after_ms:o.after_ms??0,...o.from&&{from:o.from},...o.to&&{to:o.to}};break;case"compaction":e.compacted++;break;case"usage":si(e,o)}}function Yo(e){
e.blocks=e.blocks.filter(t=>t.done)}function si(e,t){let o=e.usage??{calls:0,input:0,output:0,microdollars:0,priced:!0,model:""};e.usage={calls:o.calls+1,input:o.
input+(t.input??0),output:o.output+(t.output??0),microdollars:o.microdollars+(t.microdollars??0),priced:o.priced&&t.microdollars!==void 0,model:t.model||o.model}}
function Go(e){let t=new Map(e.turns.map(o=>[o.id,o]));return e.spoken.filter(o=>{let r=t.get(o.turn);return!(r&&ii(r).includes(Zo(o.text)))&&!e.asks.has(o.id.split(
"#")[0]??"")})}var Zo=e=>e.replace(/\s+/g,"");function ii(e){if(e.squeezed?.version!==e.version){let t=Zo(e.blocks.filter(o=>o.kind==="text").map(o=>o.text).join(
""));e.squeezed={version:e.version,text:t}}return e.squeezed.text}var Qo=45e3,er=400,ai=1e4,li=1e4;async function Pt(e,t,o){let r={last:""},s=er;for(;!o.aborted;){try{await ci(e,r,t,o,()=>{s=er}),t.state("away")}catch(i){if(o.
aborted)return;if(i instanceof Y&&i.status>=400&&i.status<500&&i.status!==429){t.state("away",i.message);return}t.state("away")}await di(document.hidden?Number.
POSITIVE_INFINITY:s*(.75+Math.random()/2),o),s=Math.min(s*2,ai)}}async function ci(e,t,o,r,s){let i=new AbortController,a=()=>i.abort();r.addEventListener("abor\
t",a);let l=setTimeout(a,Qo),c=setTimeout(()=>{},0),d=()=>{clearTimeout(c),document.hidden&&(c=setTimeout(a,li))};document.addEventListener("visibilitychange",d);
try{let u={Accept:"text/event-stream"};t.last&&(u["Last-Event-ID"]=t.last);let h=await fetch(e,{headers:u,signal:i.signal,credentials:"same-origin",cache:"no-st\
ore"});if(!h.ok||!h.body)throw await Te(h);s(),o.state("live");let f=new bn((b,w,_)=>{b&&(t.last=b),o.event(w,JSON.parse(_))}),m=h.body.pipeThrough(new TextDecoderStream).
getReader();for(;;){let{done:b,value:w}=await m.read();if(b)return;clearTimeout(l),l=setTimeout(a,Qo),f.take(w)}}finally{clearTimeout(l),clearTimeout(c),document.
removeEventListener("visibilitychange",d),r.removeEventListener("abort",a),i.abort()}}var bn=class{constructor(t){this.tell=t}tell;rest="";id="";type="";data=[];take(t){
let o=(this.rest+t).split(`
`);this.rest=o.pop()??"";for(let r of o)this.line(r.replace(/\r$/,""))}line(t){if(t===""){this.data.length>0&&this.tell(this.id,this.type,this.data.join(`
`)),this.id=this.type="",this.data=[];return}let o=t.indexOf(":");if(o===0)return;let r=o<0?t:t.slice(0,o),s=o<0?"":t.slice(o+1).replace(/^ /,"");r==="id"?this.
id=s:r==="event"?this.type=s:r==="data"&&this.data.push(s)}};function di(e,t){return new Promise(o=>{let r=()=>{clearTimeout(i),removeEventListener("online",r),
document.removeEventListener("visibilitychange",s),t.removeEventListener("abort",r),o()},s=()=>{document.visibilityState==="visible"&&r()},i=Number.isFinite(e)?
setTimeout(r,e):void 0;addEventListener("online",r),document.addEventListener("visibilitychange",s),t.addEventListener("abort",r)})}var ui=120,mi=10,Ct=class{constructor(t,o){this.key=t;this.known=o}key;known;whole=!1;end=-1;rest=[];async read(t){let o=this.rest,r=this.end<0?await this.last(
t):this.end,s=0;for(;r>0&&s<=mi;){let a=Math.max(0,r-ui),l=await this.between(a,r,t);s+=l.filter(c=>c.kind==="turn_started").length,o=[...l,...o],r=a}this.end=r,
this.whole=r<=0;let i=this.whole?0:o.findIndex(a=>a.kind==="turn_started");return this.rest=i<0?o:o.slice(0,i),i<0?[]:wn(o.slice(i),this.key)}async last(t){let{
last:o}=await k(["sessions",this.key],{after:Number.MAX_SAFE_INTEGER,limit:1},t);return o}async between(t,o,r){let{entries:s}=await vn(this.key,t,o,r),i=this.known();
return s.filter(a=>!i.has(a.turn)&&!i.has(a.data?.of??""))}};async function vn(e,t,o,r){let s=[];for(let i=t;i<o;){let{entries:a,next:l}=await k(["sessions",e],
{after:i,limit:o-i},r);if(s.push(...a.filter(c=>c.n<=o)),l===void 0)return{entries:s,last:!0};i=l}return{entries:s,last:!1}}function wn(e,t,o=!1){let r=new Map,
s=[];for(let i of e){let a=i.data??{},l=pi(i,a,t);l&&s.push(l);let c=r.get(i.turn);if(!c){if(i.kind!=="turn_started"&&!(o&&tr(i,a)))continue;c={...Et(i.turn),state:"\
done",asks:[]},r.set(i.turn,c),s.push(c)}fi(c,i,a,t),i.kind==="turn_done"&&(c.state=a.state??"done");let d=tr(i,a);d&&Ye(c,d)}for(let i of r.values())i.asks=i.asks?.
filter(a=>a.state!=="open")??[];return s.filter(i=>!("blocks"in i)||i.blocks.length>0)}function pi(e,t,o){let r=e.kind==="notice"&&t.code==="operator"?t.quotes?.[0]:
void 0;return r?{id:t.of??e.turn,turn:"",text:r.text,after:"",operator:{name:r.name??"",cut:!1}}:e.kind!=="command"||!t.reply?.text||!["web","console"].includes(
ae(o).channel)?null:{id:t.reply.id+"/0",turn:e.turn,text:t.reply.text,after:"",command:t.name??""}}function fi(e,t,o,r){let s=e.asks??[],i=(a,l)=>{e.asks=s.map(
c=>a(c)?{...c,...l}:c)};t.kind==="turn_parked"&&(e.asks=[...s,...(o.asks??[]).flatMap(a=>gi(a,e,r,t.at))]),t.kind==="ask_ended"&&i(a=>a.id===o.ask,{state:o.state,
...o.answer&&{answer:o.answer},...t.person&&{by:t.person}}),t.kind==="turn_done"&&i(a=>a.state==="open",{state:"withdrawn"})}function gi({id:e,call:t,kind:o,expires:r,
...s},i,a,l){if(o==="task")return[];let c=i.blocks.find(h=>h.kind==="tool_use"&&h.call===t),d={id:e,kind:o,session:a,turn:i.id,person:"",at:l,expires:r,state:"o\
pen",...s.reason&&{reason:s.reason}};if(o==="question")return[{...d,...s.question&&{question:s.question},...s.choices&&{choices:s.choices}}];let u=s.args??c?.input;
return[{...d,tool:c?.tool??"",arguments:u,shown:hi(s.shown??"",s.shown_of??[],u)}]}function hi(e,t,o){if(!e)return[];let r=Object.entries(o??{}).filter(([s])=>!t.
includes(s));return[{text:e},...r.map(([s,i])=>({name:s,text:typeof i=="string"?i:JSON.stringify(i)}))]}function tr(e,t){if(!["user","thinking","text","tool_use",
"tool_result"].includes(e.kind))return null;let o={number:e.n,kind:e.kind,call:e.call??"",cause:e.cause??"",cut:!1,done:!0,late:!1};switch(e.kind){case"tool_use":
return{...o,text:"",tool:t.name??"",name:"",input:t.args,failed:!1};case"tool_result":return{...o,text:JSON.stringify(t.content??""),tool:"",name:"",failed:!!t.
code};default:return{...o,text:t.text??"",tool:"",name:t.name??"",failed:!1}}}var nr=50,or=250,bi=5e3,At=class{constructor(t,o,r,s){this.session=t;this.mayJobs=o;this.take=r;this.left=s;s.addEventListener("abort",zo(i=>this.hear(i)))}session;mayJobs;take;left;wanted=new Set;begun=!1;reading=!1;readAll(){
this.begun=!0,this.want("all")}readJob(t){this.want("jobs/"+t)}hear({kind:t,session:o,id:r}){if(this.begun)if(t==="reset")this.readAll();else{if(o!==this.session)
return;t==="task"?this.want(r?"tasks/"+r:"all"):(t==="job"||t==="job_output")&&r&&this.want("jobs/"+r)}}want(t){t.startsWith("jobs/")&&!this.mayJobs||(this.wanted.
add(t),this.reading||this.readIn(or))}readIn(t){this.reading=!0,setTimeout(()=>{this.read()},t)}async read(){let t=!1;for(let o of[...this.wanted]){if(this.left.
aborted)return;this.wanted.delete(o);try{await(o==="all"?this.readLists():this.readOne(o))}catch(r){if(this.left.aborted)return;let s=r instanceof Y?r.status:0;
s===404?this.take("gone",o.slice(o.indexOf("/")+1)):s===0||s===429||s>=500?(this.wanted.add(o),t=!0):this.begun=!1}}this.reading=!1,this.wanted.size>0&&this.readIn(
t?bi:or)}async readLists(){let{tasks:t}=await k(["tasks"],{session:this.session,limit:nr},this.left);if(this.take("tasks",t),!this.mayJobs)return;let{jobs:o}=await k(
["jobs"],{session:this.session,limit:nr},this.left);this.take("jobs",o);for(let r of o)r.state==="running"&&this.wanted.add("jobs/"+r.id)}async readOne(t){let[o="",
r=""]=t.split("/");this.take(o==="tasks"?"task":"job",await k([o,r],{},this.left))}};var vi=3e3,wi=8,yi=120,rr=90,ki=2,Jt=class{constructor(t,o,r,s,i){this.key=t;this.changed=o;let a=(l,c)=>{this.log.apply(l,c),this.draw()};this.work=new At(t,s,
a,this.left.signal),this.messages=[...i,...Ve.get(t).filter(l=>!i.some(c=>c.key===l.key))],this.first=this.messages.filter(l=>!l.id),Ve.set(t,this.messages),Pt(
ee(["sessions",t,"events"]),{event:(l,c)=>{this.apply(l,c),l==="snapshot"&&this.work.readAll(),l==="snapshot"&&r&&this.readAsks(),this.draw()},state:(l,c="")=>{
this.live=l==="live",this.live&&this.begin(),this.away=c,this.draw()}},this.left.signal),setTimeout(()=>this.begin(),vi)}key;changed;log=new Tt;messages=[];live=!1;away="";problem="";earlier=[];first;past=null;left=new AbortController;work;frame=0;trims=!1;begin(){
if(!this.left.signal.aborted)for(let t of this.first.splice(0))this.send(t)}apply(t,o){let r=this.log.turns[0]?.id;this.leave(this.log.apply(t,o)),r!==void 0&&this.
log.turns[0]?.id!==r&&(this.earlier=[],this.past=null),this.log.turns.length>yi&&!this.trims&&this.log.mayLeave()>0&&(this.trims=!0,sr(()=>this.trim()))}leave(t){
t.size!==0&&(this.messages=this.messages.filter(o=>!o.id||!t.has(o.id)),Ve.set(this.key,this.messages))}trim(){if(this.left.signal.aborted)return;let t=this.log.
turns.length;this.earlier.length>0?this.earlier=this.earlier.slice(1):this.leave(this.log.leave(Math.max(rr,t-ki))),this.past=null,this.draw(),this.trims=this.earlier.
length>0||this.log.turns.length<t&&this.log.turns.length>rr,this.trims&&requestAnimationFrame(()=>sr(()=>this.trim()))}mayHaveEarlier(){return this.past?!this.past.
whole:this.log.turns.length>=wi}async readEarlier(){let t=this.past??=new Ct(this.key,()=>this.shown()),o=await t.read(this.left.signal);this.past===t&&(o.length>
0&&(this.earlier=[o,...this.earlier]),this.work.readAll(),this.draw())}shown(){let t=new Set;for(let o of[...this.log.turns,...this.log.spoken,...this.earlier.flat()])
t.add(o.id),"turn"in o&&t.add(o.turn);return t.delete(""),t}readJob=t=>this.work.readJob(t);close(){this.left.abort(),cancelAnimationFrame(this.frame)}say(t,o){
this.add(je(this.key,t,o))}sayAsOperator(t){this.add({...je(this.key,t,[]),operator:!0})}add(t){this.messages=[...this.messages,t],this.send(t)}async send(t){let o=()=>{
Ve.set(this.key,this.messages),this.draw()};await Jo(t,o);let r=()=>!this.pending().includes(t);t.operator?await Bo(t,o,r,this.left.signal):Oo(t)&&await Lo(t,o,
r,this.left.signal)}drop(t){this.messages=this.messages.filter(o=>o!==t),this.draw()}pending(){let t=new Set;for(let o of this.log.turns){for(let r of o.causes)
t.add(r);for(let r of o.blocks)r.kind==="user"&&t.add(r.cause)}for(let o of this.log.spoken)t.add(o.operator?o.id:o.turn);return this.messages.filter(o=>o.state!==
"done"&&(!o.id||!t.has(o.id)))}sentOf(t){return this.messages.filter(o=>o.id&&t.causes.includes(o.id)&&!t.blocks.some(r=>r.kind==="user"&&r.cause===o.id))}aside(t,o){
let r=new Map(this.messages.map(s=>[s.id,s]));return t.filter(s=>!o.has(s.turn)).map(s=>{let i=s.turn?r.get(s.turn):void 0;return r.delete(s.turn),i?{message:i,
spoken:s}:{spoken:s}})}async readAsks(){try{let{asks:t}=await k(["asks"],{session:this.key},this.left.signal);for(let o of t)this.log.apply("ask",o);this.problem=
""}catch(t){if(this.left.signal.aborted)return;this.problem="Couldn't load the open requests: "+Je(t)}this.draw()}draw(){this.frame||(this.frame=requestAnimationFrame(
()=>{this.frame=0,this.changed()}))}};function sr(e){"requestIdleCallback"in window?requestIdleCallback(e,{timeout:ir}):setTimeout(e,ir)}var ir=250;function Mt(e){let t=e.shown??[];return(t.length>0||e.arguments===void 0?t:[{text:JSON.stringify(e.arguments,null,2)}]).map(r=>({...r,text:v(r.text)}))}function ar(e){
return e.reduce((t,o)=>t+o.text.split(`
`).length,0)}function Le({parts:e,tool:t,most:o=1/0}){let r=o,s=[];for(let i of e){if(r<=0)break;let a=i.text.split(`
`).slice(0,r);r-=a.length,s.push({part:i,lines:a})}return n("div",{class:"preview",children:s.map(({part:i,lines:a})=>{let l=i.name&&v(i.name);return n("div",{children:[
l&&n("h3",{children:l}),n("pre",{tabIndex:0,role:"region","aria-label":l||"What would run",children:a.map((c,d)=>n(Si,{text:c,marked:!i.name&&_i(i.text,t)},d))})]},
i.name??"")})})}function _i(e,t){return t==="write_file"?!/^[^\n]*(a new file|all of it):\n/.test(e):t==="edit_file"||t==="apply_patch"}function Si({text:e,marked:t}){
let o="";return t&&e.startsWith("+")?o="plus":t&&e.startsWith("-")?o="minus":t&&/^(@@|\*\*\*)/.test(e)&&(o="head"),n("span",{class:"preview-line "+o,children:e+
`
`})}function lr(e,t){if(t.owner)return"";let o=e.person==="web:"+t.name;return e.kind==="question"?o&&(t.may.agent||t.may.approve)?"":"Only an owner or the person w\
ho started this turn can answer.":o?"You started this turn yourself, so someone else needs to approve the call.":t.may.approve?"":"Your token needs the approve \
scope to decide this."}function Bt(e,t,o=""){return H(["asks",e.id],o?{answer:t,reason:o}:{answer:t})}function Ot({ask:e}){return e.kind==="question"?n(g,{children:"The agent has a question"}):n(g,{children:[n("code",{children:v(e.tool??"A tool")})," needs appro\
val"]})}function Lt({ask:e,me:t,most:o,onDone:r}){let s=lr(e,t);return n(g,{children:[e.reason&&n("p",{children:["Reason: ",v(e.reason)]}),e.kind==="question"?n(
Ti,{ask:e,closed:s!=="",onDone:r}):n(xi,{ask:e,closed:s!=="",most:o,onDone:r}),s&&n("p",{class:"note",children:s})]})}function xi({ask:e,closed:t,most:o,onDone:r}){
let s=Mt(e),i=ar(s),[a,l]=p(i<=o),[c,d]=p(""),[u,h]=p(""),[f,m]=p(null),b=v(e.tool??"the call"),w=async x=>r(await Bt(e,x)),_=x=>()=>a?w(x):h(x),P=async()=>r(await Bt(
e,"deny",c.trim()));return n(g,{children:[n(Le,{parts:s,tool:e.tool,most:a?1/0:o}),!a&&n("div",{children:n(y,{onPress:()=>l(!0),children:["Show all ",i," lines"]})}),
n(M,{error:f}),!t&&n(g,{children:[n("div",{class:"decide",children:[n(y,{look:"main",onPress:_("approve"),onError:m,label:`Approve once: ${b}`,children:"Approve\
 once"}),n(y,{onPress:_("session"),onError:m,label:`Approve for this session: ${b}`,children:"Approve for this session"}),n("label",{class:"away",for:"reason-"+
e.id,children:"Reason for denying, which the agent sees"}),n("input",{id:"reason-"+e.id,placeholder:"Why not? (optional)",value:c,onInput:x=>d(x.currentTarget.value)}),
n(y,{look:"danger",onPress:P,onError:m,label:`Deny: ${b}`,children:"Deny"})]}),n("p",{class:"faint",children:"If you approve it for this session, exactly the sa\
me call runs there again without asking."})]}),u&&n(fe,{title:"You haven't seen all of it",confirm:"Approve anyway",onConfirm:()=>w(u),onClose:()=>h(""),children:[
"The call has ",i," lines. You see the first ",o,"."]})]})}function Ti({ask:e,closed:t,onDone:o}){let[r,s]=p(""),[i,a]=p(null),l=async d=>o(await Bt(e,d)),c=()=>l(
r.trim());return n(g,{children:[n("p",{class:"question",children:v(e.question??"")}),n(M,{error:i}),!t&&e.choices&&e.choices.length>0&&n("div",{class:"decide",children:e.
choices.map((d,u)=>n(y,{onPress:()=>l(d),onError:a,children:v(d)},u))}),!t&&n("form",{class:"decide",onSubmit:d=>{d.preventDefault(),r.trim()&&c().catch(a)},children:[
n("label",{class:"away",for:"words-"+e.id,children:"Your answer"}),n("input",{id:"words-"+e.id,placeholder:"Answer in your own words",value:r,onInput:d=>s(d.currentTarget.
value)}),n(y,{disabled:!r.trim(),onPress:c,onError:a,children:"Answer"})]})]})}var Ei=15;function yn({ask:e,me:t}){let[o,r]=p(null),s=e.state==="open"&&o?o:e;if(s.state!=="open")return n(Pi,{ask:s,me:t});let i="ask-"+e.id;return n("div",{class:"\
ask open",role:"group","aria-labelledby":i,children:[n("div",{class:"ask-title",id:i,children:n(Ot,{ask:e})}),n(Lt,{ask:e,me:t,most:Ei,onDone:r}),n("div",{class:"\
faint",children:["Expires ",n(T,{at:e.expires})]})]})}function Pi({ask:e,me:t}){return n("details",{class:"ask ended",children:[n("summary",{children:[e.kind===
"question"?v(e.question??""):n("code",{children:v(e.tool??"")})," ",n("strong",{children:Ai(e,t)})]}),e.reason&&n("div",{children:["Reason: ",v(e.reason)]}),e.kind===
"approval"&&n(Le,{parts:Mt(e),tool:e.tool})]})}var Ci={approve:"Approved",session:"Approved for this session",deny:"Denied"};function Ai(e,t){if(e.state==="expi\
red")return"Expired: nobody answered in time";if(e.state==="withdrawn")return"Withdrawn";let o=e.by?e.by==="web:"+t.name?" by you":" by "+v(e.by):"",r=e.answer??
"";return(e.kind==="approval"?Ci[r]??"Answered":v(r))+o}function Xt(e){switch(e.state){case"running":return["running",e.stopping?"stopping":"running"];case"exited":return[e.exit_code?"failed":"ok",`exit code ${e.exit_code??
0}`];case"stopped":return["over","stopped"];case"killed":return["failed","ended at a limit"];case"failed":return["failed","couldn't be run"];default:return["unk\
nown","outcome unknown"]}}function Dt({of:e,session:t}){return n(g,{children:["This ends ",n("code",{class:"name",children:v(e.command)}),t&&n(g,{children:[" of\
 ",n("span",{class:"name",children:v(t)})]}),", which may leave its work half done. The conversation is told."]})}var ue=class extends ne{#e="";#t=[];shouldComponentUpdate(t){return t.text!==this.props.text}render(){let{text:t}=this.props;t.startsWith(this.#e)||(this.#e="",
this.#t=[]);let o=t.slice(this.#e.length).split(`
`),r=ur(o,0),s=r.at(-2);return s&&s.at>0&&(this.#e+=o.slice(0,s.at).join(`
`)+`
`,this.#t.push(...r.splice(0,r.length-2).map(i=>i.part))),n("div",{class:"markdown",children:[...this.#t,...r.map(i=>i.part)]})}},dr=6;function Sn(e,t){return ur(
e,t).map(o=>o.part)}function ur(e,t){let o=[],r=0;for(;r<e.length;){let s=e[r]??"";if(s.trim()===""){r++;continue}let[i,a]=Ji(e,r)??Mi(e,r)??Bi(s,r)??Oi(s,r)??Li(
e,r)??Xi(e,r,t)??Di(e,r,t)??Ni(e,r);o.push({part:i,at:r}),r=a}return o}function Ji(e,t){let o=/^ {0,3}(`{3,}|~{3,})\s*([^`]*)$/.exec(e[t]??"");if(!o)return null;
let r=o[1]??"```",s=[],i=t+1;for(;i<e.length;i++){let a=e[i]??"",l=a.trim();if(l.startsWith(r)&&l.replaceAll(r[0]??"`","")==="")break;s.push(a)}return[n(Rt,{text:s.
join(`
`),language:(o[2]??"").trim().split(/\s/)[0]??""}),i+1]}function Mi(e,t){let o=/^( {4}|\t)/;if(!o.test(e[t]??""))return null;let r=[],s=t;for(;s<e.length&&(o.test(
e[s]??"")||(e[s]??"").trim()==="");s++)r.push((e[s]??"").replace(o,""));return[n(Rt,{text:r.join(`
`).trimEnd()}),s]}function Rt({text:e,language:t=""}){return n("div",{class:"code",children:[n("div",{class:"code-bar",children:[n("span",{children:t}),n("butto\
n",{type:"button",onClick:r=>{let s=r.currentTarget;navigator.clipboard?.writeText(e).then(()=>{s.textContent="Copied"})},children:"Copy"})]}),n("pre",{tabIndex:0,
children:n("code",{children:e})})]})}function Bi(e,t){let o=/^ {0,3}(#{1,6})\s+(.*?)\s*#*$/.exec(e);if(!o)return null;let r=le(o[2]??""),s=o[1]?.length??1;return s===
1?[n("h3",{class:"large",children:r}),t+1]:[s===2?n("h3",{children:r}):n("h4",{children:r}),t+1]}function Oi(e,t){return/^ {0,3}([-*_])\s*(\1\s*){2,}$/.test(e)?
[n("hr",{}),t+1]:null}var kn=e=>e.trim().replace(/^\||\|$/g,"").split(/(?<!\\)\|/).map(t=>t.trim().replaceAll("\\|","|"));function Li(e,t){let o=e[t]??"";if(!o.
includes("|")||!/^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$/.test(e[t+1]??""))return null;let r=kn(o);if(r.length!==kn(e[t+1]??"").length)return null;let s=[],
i=t+2;for(;i<e.length&&(e[i]??"").includes("|");i++)s.push(kn(e[i]??""));return[n("div",{class:"table",tabIndex:0,role:"region","aria-label":"Table",children:n(
"table",{children:[n("thead",{children:n("tr",{children:r.map(l=>n("th",{scope:"col",children:le(l)}))})}),n("tbody",{children:s.map(l=>n("tr",{children:r.map((c,d)=>n(
"td",{children:le(l[d]??"")}))}))})]})}),i]}function Xi(e,t,o){if(o>=dr||!/^ {0,3}>/.test(e[t]??""))return null;let r=[],s=t;for(;s<e.length&&/^ {0,3}>/.test(e[s]??
"");s++)r.push((e[s]??"").replace(/^ {0,3}> ?/,""));return[n("blockquote",{children:Sn(r,o+1)}),s]}var Nt=/^( *)([-*+]|\d{1,9}[.)])(?:\s+(.*))?$/,$t=e=>e.slice(
-1),ye=e=>e.length-e.trimStart().length;function Di(e,t,o){let r=Nt.exec(e[t]??"");if(!r||o>=dr)return null;let s=(r[1]??"").length,i=r[2]??"",a=[],l=!1,c=t,d=0;
for(;c<e.length;){let h=e[c]??"",f=Nt.exec(h),m=f!==null&&ye(h)<s+2&&ye(h)>=s;if(h.trim()===""){let b=c+1;for(;b<e.length&&(e[b]??"").trim()==="";)b++;let w=e[b]??
"",_=Nt.exec(w),P=_!==null&&ye(w)>=s&&$t(_[2]??"")===$t(i);if(b===e.length||!(P||ye(w)>=d))break;l||=ye(w)<d+2,a.at(-1)?.push(""),c=b}else if(m){if($t(f[2]??"")!==
$t(i))break;d=ye(h)+(f[2]??"").length+1,a.push([f[3]??""]),c++}else if(ye(h)>s)a.at(-1)?.push(h.slice(Math.min(ye(h),d))),c++;else break}let u=a.map(h=>n("li",{
children:l?Sn(h,o+1):$i(h,o)}));return[/\d/.test(i)?n("ol",{start:Number.parseInt(i,10),children:u}):n("ul",{children:u}),c]}function $i(e,t){let[o="",...r]=e,s=/^\[([ xX])\]\s+(.*)$/.
exec(o),i=[s?s[2]??"":o];for(;r.length>0&&(r[0]??"").trim()!==""&&!Nt.test(r[0]??"")&&!/^ {0,3}(```|~~~|>|#)/.test(r[0]??"");)i.push(r.shift()??"");return[s?s[1]===
" "?"☐ ":"☑ ":null,le(i.join(`
`)),r.some(l=>l.trim())?Sn(r,t+1):null]}function Ni(e,t){let o=[],r=t;for(;r<e.length;r++){let s=e[r]??"";if(s.trim()===""||r>t&&/^ {0,3}(`{3,}|~{3,}|#{1,6}\s|>|[-*+]\s|\d{1,9}[.)]\s)/.
test(s))break;o.push(s)}return[n("p",{children:le(o.join(`
`))}),r]}var Ri=[{at:/^\\([!-/:-@[-`{-~])/,make:e=>e[1]},{at:/^(`+)([^`]|[^`][\s\S]*?[^`])\1(?!`)/,make:e=>n("code",{children:(e[2]??"").replace(/^ (.*) $/,"$1")})},
{at:/^!?\[((?:[^[\]\\]|\\.)*)\]\(\s*<?([^\s<>()]*(?:\([^\s()]*\)[^\s<>()]*)*)>?(?:\s+"[^"]*")?\s*\)/,make:e=>_n(e[2]??"",le(e[1]??""),e[0])},{at:/^<(https?:\/\/[^\s<>]+|mailto:[^\s<>]+)>/,
make:e=>_n(e[1]??"",e[1]??"",e[0])},{at:/^https?:\/\/[^\s<>"'`]*[^\s<>"'`.,;:!?)\]}*_~]/,make:e=>_n(e[0],e[0],e[0])},{at:/^\*\*\*(?=[^\s*])([^*]*?[^\s*])\*\*\*/,
make:e=>n("strong",{children:n("em",{children:le(e[1]??"")})})},{at:/^\*\*(?=\S)((?:[^*]|\*(?!\*))*?\S)\*\*/,make:e=>n("strong",{children:le(e[1]??"")})},{at:/^__(?=\S)((?:[^_]|_(?!_))*?\S)__(?!\w)/,
make:e=>n("strong",{children:le(e[1]??"")})},{at:/^\*(?=[^\s*])([^*]*?[^\s*])\*(?!\*)/,make:e=>n("em",{children:le(e[1]??"")})},{at:/^_(?=[^\s_])([^_]*?[^\s_])_(?!\w)/,
make:e=>n("em",{children:le(e[1]??"")})},{at:/^~~(?=\S)([^~]*?\S)~~/,make:e=>n("s",{children:le(e[1]??"")})},{at:/^(?: *|\\)\n */,make:()=>n("br",{})},{at:/^&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z][a-zA-Z0-9]{1,31});/,
make:e=>Ii(e[0])}];function Ii(e){return new DOMParser().parseFromString(e,"text/html").body.textContent??e}var cr=/[\\`![<*_~h&]| *\n/g;function le(e){let t=[],
o="",r=0;for(;r<e.length;){cr.lastIndex=r;let s=cr.exec(e);if(!s)break;o+=e.slice(r,s.index),r=s.index;let i=Ui(e,r);if(!i){o+=e[r],r++;continue}o&&t.push(o),o=
"",t.push(i.part),r+=i.length}return o+=e.slice(r),o&&t.push(o),t}var Fi=2e3;function Ui(e,t){let o=e[t-1]??" ",r=e[t]??"";if((r==="_"||r==="h"||r==="*"&&e[t+1]!==
"*")&&/\w/.test(o))return null;let i=e.slice(t,t+Fi);for(let a of Ri){let l=a.at.exec(i);if(l)return{part:a.make(l),length:l[0].length}}return null}function _n(e,t,o){
return pr(e)?n("a",{href:e,target:"_blank",rel:"noopener noreferrer",children:t}):o.startsWith("<")?o:[t,` (${e})`]}function mr(e){return/^https?:/i.test(e)&&pr(
e)}function pr(e){try{return/^(https?:\/\/|mailto:)/i.test(e)&&["http:","https:","mailto:"].includes(new URL(e).protocol)}catch{return!1}}function fr({of:e,me:t,readJob:o}){return"command"in e?n(zi,{job:e,me:t,read:()=>o(e.id)}):n(Hi,{task:e})}var Wi={prepared:["waiting","waiting to start"],running:[
"running","working"],waiting:["waiting","waiting for an answer"],done:["ok","done"],failed:["failed","failed"],cancelled:["over","stopped"],lost:["unknown","its\
 session was erased"]};function Hi({task:e}){let[t,o]=Wi[e.state],r=e.state==="running"&&e.tools?"running "+e.tools.map(v).join(", "):o,s=e.usage.input+e.usage.
output;return n("div",{class:"beside task "+t,role:"group","aria-label":"Sub-agent "+v(e.agent),children:[n("div",{class:"beside-line",children:[n("span",{class:"\
mark","aria-hidden":"true"}),n("span",{children:["Sub-agent ",n("strong",{children:v(e.agent)})]}),n("span",{class:"beside-state",children:e.stopping?"stopping":
r}),!e.ended&&n("span",{class:"faint",children:["for ",n(de,{at:e.started})]}),e.usage.calls>0&&n("span",{class:"faint",title:D(e.usage.calls,"model call"),children:[
C(s)," tokens"]}),e.state!=="lost"&&n("a",{href:X("chat",e.session),"aria-label":"Open its session: sub-agent "+v(e.agent),children:"Open its session"})]}),e.title&&
n("div",{class:"faint",children:v(e.title)}),e.report&&n("details",{class:"beside-more",children:[n("summary",{children:e.state==="done"?"Its answer":"What it r\
eported"}),n(ue,{text:e.report}),e.cut&&n("p",{class:"faint",children:"This is only the beginning. The sub-agent's session has the rest."})]})]})}var qi=12;function zi({
job:e,me:t,read:o}){let[r,s]=p(!1),[i,a]=Xt(e),l=v(e.command),c=async()=>{await G(["jobs",e.id]),o()};return n("div",{class:"beside job "+i,role:"group","aria-l\
abel":"Background job "+l,children:[n("div",{class:"beside-line",children:[n("span",{class:"mark","aria-hidden":"true"}),n("code",{class:"beside-command",children:l}),
n("span",{class:"beside-state",children:a}),e.state==="running"&&n("span",{class:"faint",children:["for ",n(de,{at:e.started})]}),t.may.admin&&e.state==="runnin\
g"&&!e.stopping&&n(y,{look:"danger",onPress:()=>s(!0),label:"Stop "+l,children:"Stop…"})]}),e.detail&&n("div",{class:"faint",children:v(e.detail)}),e.state===
"running"?n(ji,{job:e}):n(Vi,{job:e,read:o}),r&&n(fe,{title:"Stop this job?",confirm:"Stop job",danger:!0,onConfirm:c,onClose:()=>s(!1),children:n(Dt,{of:e})})]})}
function ji({job:e}){if(!e.output)return null;let t=e.output.trimEnd().split(`
`);return n(gr,{text:t.slice(-qi).join(`
`),label:"Newest output of "+v(e.command)})}function Vi({job:e,read:t}){return e.printed===0?null:n("details",{class:"beside-more",onToggle:r=>{r.currentTarget instanceof
HTMLDetailsElement&&r.currentTarget.open&&e.output===void 0&&t()},children:[n("summary",{children:["Output, ",j(e.printed)]}),e.output===void 0?n("p",{class:"fa\
int",children:"Loading…"}):n(gr,{text:e.output,label:"Output of "+v(e.command)})]})}function gr({text:e,label:t}){return n("pre",{class:"beside-output",tabIndex:0,
role:"region","aria-label":t,children:v(e)})}var Ki={writing:"writing",waiting:"waiting",running:"running",ok:"done",failed:"failed",unknown:"outcome unknown",over:"ended"},Ge=class extends ne{drawn="";shouldComponentUpdate(t){
return hr(t)!==this.drawn}render(){return this.drawn=hr(this.props),n(Yi,{...this.props})}};function hr({call:e,use:t,result:o,over:r}){let s=e?.progress??"";return JSON.
stringify([r,e?.id,e?.state,e?.brief,s.length,s.slice(-80),e?.error?.code,t?.text.length,t?.done,t?.call,t?.tool,t?.cut,o?.text.length,o?.done,o?.failed,o?.cut])}
function Yi({session:e,call:t,use:o,result:r,over:s}){let[i,a]=p(!1),l=o?.tool||t?.tool||"tool",c=na(o),d=c?It(c.others):oa(o),u=r?ra(r.text):"",h=ea(t,o,r,s),f=t?.
error;return n("details",{class:"call "+h,onToggle:m=>m.currentTarget.open&&a(!0),children:[n("summary",{children:[n("span",{class:"mark","aria-hidden":"true"}),
n("span",{class:"call-name",children:v(l)}),n("span",{class:"call-brief",children:v(t?.brief||sa(c?c.others:o?.input,d))}),n("span",{class:"call-state",children:Ki[h]})]}),
n("div",{class:"call-body",children:[c&&n("div",{class:"labeled",children:[n("div",{class:"faint",children:["Change",o?.cut&&wr]}),n(Le,{parts:[{text:v(c.lines)}],
tool:l})]}),d!==""&&n(xn,{title:"Arguments",text:v(d),cut:o?.cut}),h==="running"&&t?.progress&&n(xn,{title:"Progress",text:t.progress}),f&&n("p",{class:"call-er\
ror",children:[f.message," ",n("span",{class:"faint",children:["(",f.code,")"]})]}),h==="unknown"&&n("p",{class:"call-error",children:"The call was interrupted.\
 It may or may not have taken effect."}),r&&u!==""&&!(f&&u.includes(f.message))&&n(xn,{title:"Result",text:u,cut:r.cut}),i&&r&&!r.failed&&Qi(r.text).map(m=>n(Gi,
{session:e,name:m},m))]})]})}var wr=" (shortened; the log has the full text)";function xn({title:e,text:t,cut:o}){return n("div",{class:"labeled",children:[n("d\
iv",{class:"faint",children:[e,o&&wr]}),n(Rt,{text:t})]})}function Gi({session:e,name:t}){return n("figure",{class:"picture",children:[n("figcaption",{class:"fa\
int name",children:v(t)}),n(xt,{session:e,name:t})]})}var Zi=8;function Qi(e){try{let t=JSON.parse(e),o=Array.isArray(t?.content)?t.content:[],r=[t?.path,...o.map(
s=>s?.path)].filter(s=>typeof s=="string").filter(St);return[...new Set(r)].slice(0,Zi)}catch{return[]}}function ea(e,t,o,r){return e?.error?.code===br||o?.failed&&
ta(o.text)===br?"unknown":o?o.failed?"failed":"ok":e&&e.state!=="running"?e.state==="failed"?"failed":"ok":r?"over":e?"running":t&&!t.done?"writing":"waiting"}var br="\
outcome_unknown";function ta(e){return/"code"\s*:\s*"([a-z_]+)"/.exec(e)?.[1]??""}function na(e){if(e?.input===null||typeof e?.input!="object")return null;let{old_text:t,
new_text:o,patch:r,...s}=e.input;return e.tool==="apply_patch"&&typeof r=="string"?{lines:r,others:s}:e.tool!=="edit_file"||typeof t!="string"||typeof o!="strin\
g"?null:{lines:[...vr("-",t),...vr("+",o)].join(`
`),others:s}}var vr=(e,t)=>t===""?[]:t.replace(/\n$/,"").split(`
`).map(o=>e+o);function oa(e){if(!e)return"";if(e.input!==void 0)return It(e.input);try{return It(JSON.parse(e.text))}catch{return e.text}}function It(e){return typeof e==
"string"?e:e!==null&&typeof e=="object"&&Object.keys(e).length===0?"":JSON.stringify(e,null,2)}function ra(e){try{return It(JSON.parse(e))}catch{return e}}function sa(e,t){
let r=(e!==null&&typeof e=="object"?Object.values(e).filter(s=>typeof s!="object").join("  "):t).replace(/\s+/g," ").trim();return r.length>160?r.slice(0,160)+"\
…":r}var Ee=class extends ne{shouldComponentUpdate(t){let o=this.props;return t.turn!==o.turn||t.version!==o.version||t.sent.length!==o.sent.length||t.said.length!==
o.said.length||t.asks.length!==o.asks.length||!ia(t.beside,o.beside)}render(){let{session:t,turn:o,sent:r,said:s,asks:i,beside:a,readJob:l,me:c,numbered:d}=this.
props,u=new Map(o.blocks.filter(w=>w.kind==="tool_result").map(w=>[w.call,w])),{placed:h,rest:f}=aa(i,o),m=w=>w.map(_=>n(fr,{of:_,me:c,readJob:l},_.id)),b=new Set(
o.blocks.filter(w=>w.kind==="tool_use").map(w=>w.call));return n("div",{class:"turn",role:"group","aria-label":"Turn",children:[r.map(w=>n(Xe,{text:w.text,files:w.
files},w.key)),o.blocks.map(w=>{let _=n(da,{session:t,me:c,block:w,turn:o,result:w.call?u.get(w.call):void 0});return n(g,{children:[d&&la(w)?n("div",{class:"nu\
mbered "+w.kind,"data-n":w.number,children:_}):_,h.get(w)?.map(P=>n(yn,{ask:P,me:c},P.id)),w.kind==="tool_use"&&m(a.filter(P=>P.call===w.call))]},w.number)}),ca(
o).map(w=>n(Ge,{session:t,call:w,over:Tn(o)},w.id)),m(a.filter(w=>!b.has(w.call))),f.map(w=>n(yn,{ask:w,me:c},w.id)),s.map(w=>n("div",{class:"spoken",children:n(
ue,{text:w.text})},w.id)),n(pa,{turn:o,told:s.length>0,me:c})]})}};function ia(e,t){return e.length===t.length&&e.every((o,r)=>o===t[r])}function aa(e,t){let o=new Map,
r=[];for(let s of e){let i=t.blocks.find(a=>a.kind==="tool_use"&&a.tool===s.tool&&!o.has(a));i?o.set(i,[s]):r.push(s)}return{placed:o,rest:r}}var la=e=>e.kind!==
"tool_result"&&(e.kind==="tool_use"||e.kind==="user"||e.text.trim()!==""),Tn=e=>e.state!=="running"&&e.state!=="parked";function ca(e){return[...e.calls.values()].
filter(t=>!e.blocks.some(o=>o.kind==="tool_use"&&o.call===t.id))}function da({session:e,me:t,block:o,turn:r,result:s}){switch(o.kind){case"user":return n(Xe,{text:o.
text,name:o.name===t.name?"":o.name,cut:o.cut,children:n(Ze,{of:o.cause===r.id?"":o.cause,me:t})});case"thinking":return o.text.trim()?n(ua,{block:o}):null;case"\
text":return o.text.trim()?n("div",{class:"answer",children:n(ue,{text:o.late?"… "+o.text.trimStart():o.text})}):null;case"tool_use":return n(Ge,{session:e,call:r.
calls.get(o.call),use:o,result:s,over:Tn(r)});default:return null}}function Ze({of:e,me:t}){return t.may.admin&&e?n("div",{class:"standing",children:n(K,{of:e})}):
null}function ua({block:e}){return n("details",{class:"thought",children:[n("summary",{children:e.done?"Thought":"Thinking…"}),n(ue,{text:e.text})]})}function Xe({
text:e,name:t,files:o=[],cut:r,children:s}){return n("div",{class:"said",children:[t&&n("div",{class:"said-name",children:t}),e&&n("div",{class:"said-text",children:[
e,r&&" … (the log has the rest)"]}),o.length>0&&n("ul",{class:"files","aria-label":"Files",children:o.map((i,a)=>n("li",{class:"file",children:[i.preview&&n("\
img",{src:i.preview,alt:""}),n("span",{children:i.name})," ",n("span",{class:"faint",children:j(i.size)})]},a))}),s]})}function De({said:e,me:t}){return n(g,{children:e.
map(({message:o,spoken:r})=>n("div",{class:"turn",children:[o?n(Xe,{text:o.text}):r.command&&n(Xe,{text:"/"+r.command}),r.operator?n(ma,{spoken:r,me:t}):n(g,{children:[
n("div",{class:"spoken",children:n(ue,{text:r.text})}),n(Ze,{of:r.turn||r.id,me:t})]})]},r.id))})}function ma({spoken:{id:e,text:t,operator:o},me:r}){return n("\
div",{class:"said operator",children:[n("div",{class:"said-name",children:["Operator",o?.name&&` (${o.name})`]}),n(ue,{text:t}),o?.cut&&n("div",{class:"faint",children:"\
… (the log has the rest)"}),n(Ze,{of:e,me:r})]})}function pa({turn:e,told:t,me:o}){let r=fa(e),s=e.error&&!t&&e.state==="failed"?e.error.message:"";return!r&&
!e.usage&&e.compacted===0&&!o.may.admin?null:n("div",{class:"standing "+e.state,children:[r&&n("span",{class:Tn(e)?"":"pulse",children:r}),s&&n("span",{children:s}),
e.compacted>0&&n("span",{title:"The model now sees a summary in place of earlier messages",children:"summarized earlier messages"}),e.usage&&n(ga,{usage:e.usage}),
o.may.admin&&n(K,{of:e.id})]})}function fa(e){switch(e.state){case"done":return"";case"failed":return"Failed";case"cancelled":return"Stopped";case"parked":return"\
Waiting for an answer"}let t=e.retry;if(!t)return"Working…";let o=t.to?` ${t.to}`:"",r=t.after_ms>=1e3?` in ${Math.round(t.after_ms/1e3)} s`:"";return t.to&&t.
from&&t.to!==t.from?`${t.from} didn't answer. Trying${o}${r}…`:`Asking the model again${r} (attempt ${t.attempt})…`}function ga({usage:e}){let t=e.priced?` \
· ${te(e.microdollars)}`:"";return n("span",{title:`${e.model}: ${D(e.calls,"model call")}`,children:[C(e.input)," tokens in · ",C(e.output)," out",t]})}function yr({me:e,session:t,title:o,begun:r,onActivity:s}){let[,i]=p(0),[a,l]=p(null),[c,d]=p(!1);E(()=>{let b=new Jt(t,()=>i(w=>w+1),e.may.approve||e.may.agent||
e.may.own,e.may.read||e.may.own,r);return l(b),()=>b.close()},[t]);let u=a?.log.running(),h=a?.log.turns.map(b=>b.id+b.state).join();E(s,[h]);let f=Xo(t,e),m=!f&&
Do(t,e);return n("section",{class:"conversation","aria-label":"Conversation",children:[n(wa,{session:t,title:o,own:f,talk:a,running:u!==void 0,files:c,setFiles:d}),
c&&n(jo,{session:t,close:()=>d(!1)}),n(ya,{mark:a?.messages.length??0,children:[n(M,{error:a?.away||a?.problem}),a&&!a.log.ready&&!a.away&&n(se,{}),a?.log.ready&&
a.log.turns.length===0&&a.log.spoken.length===0&&a.messages.length===0&&n(re,{children:"No messages yet."}),a?.log.ready&&n(ba,{talk:a,me:e}),a&&n(ha,{talk:a,me:e})]}),
a&&f&&n(gt,{session:t,running:u!==void 0,onSay:(b,w)=>a.say(b,w),onStop:()=>a.say("/stop",[])},t),a&&m&&n(No,{session:t,channel:ae(t).channel,onSay:b=>a.sayAsOperator(
b)},t),!f&&!m&&n("p",{class:"reading",children:["This conversation",ae(t).channel&&` on ${ae(t).channel}`," is read-only. Start a new chat to talk to the agent."]}),
n("p",{class:"away",role:"status",children:u?"The agent is working":"The agent is done"})]})}function ha({talk:e,me:t}){let{turns:o}=e.log,r=[...e.log.asks.values()],
s=Go(e.log),i=new Set(o.map(l=>l.id)),a=e.aside(s,i);return n(g,{children:[n(De,{said:a.filter(l=>!i.has(l.spoken.after)),me:t}),o.map(l=>n(g,{children:[n(Ee,{session:e.
key,turn:l,version:l.version,sent:e.sentOf(l),said:s.filter(c=>c.turn===l.id),asks:r.filter(c=>c.turn===l.id),beside:e.log.besideOf(l.id),readJob:e.readJob,me:t}),
n(De,{said:a.filter(c=>c.spoken.after===l.id),me:t})]},l.id)),e.pending().map(l=>n(va,{message:l,talk:e,me:t},l.key))]})}function ba({talk:e,me:t}){let[o,r]=p(null);
return n(g,{children:[e.mayHaveEarlier()&&n("div",{class:"earlier",children:n(y,{look:"quiet",onPress:()=>e.readEarlier(),onError:r,children:"Show earlier messa\
ges"})}),n(M,{error:o}),e.earlier.map(s=>n(En,{part:s,talk:e,besides:e.log.besides,me:t},s[0]?.id))]})}var En=class extends ne{shouldComponentUpdate(t){return t.
part!==this.props.part||t.besides!==this.props.besides}render(){let{part:t,talk:o,me:r}=this.props;return n("div",{class:"earlier-part",children:t.map(s=>"block\
s"in s?n(Ee,{session:o.key,turn:s,version:s.version,sent:[],said:[],asks:s.asks??[],beside:o.log.besideOf(s.id),readJob:o.readJob,me:r},s.id):n(De,{said:[{spoken:s}],
me:r},s.id))})}};function va({message:e,talk:t,me:o}){return n("div",{class:"pending "+e.state+(e.operator?" operator":""),children:n(Xe,{text:e.text,name:e.operator?
"Operator":"",files:e.files,children:e.state==="refused"?n("div",{class:"refused",role:"alert",children:[n("span",{children:["Not sent: ",e.problem]}),n(y,{onPress:()=>{
t.send(e)},children:"Send again"}),n(y,{look:"quiet",onPress:()=>t.drop(e),children:"Discard"})]}):n(g,{children:[n("div",{class:"faint",children:e.state!=="sen\
t"?"Sending…":e.operator?"On its way.":"Sent. Waiting for the agent."}),n(Ze,{of:e.id,me:o})]})})})}function wa({session:e,title:t,own:o,talk:r,running:s,files:i,
setFiles:a}){let[l,c]=p(""),{agent:d,channel:u}=ae(e);return n("div",{class:"head",children:[n("a",{class:"back",href:X("chat"),"aria-label":"All sessions",children:"\
‹"}),n("div",{class:"head-title",children:[n("h1",{children:t||we(e)}),n("div",{class:"faint",children:[d," · ",u,r&&!r.live&&r.log.ready&&!r.away&&n("span",
{class:"badge warn",children:" reconnecting…"})]})]}),n(y,{look:"quiet",onPress:()=>a(!i),label:i?"Hide files":"Show files",children:"Files"}),o&&r&&n(yo,{label:"\
Commands",children:[n(y,{look:"quiet",onPress:()=>c("/new"),children:"Start over…"}),n(y,{look:"quiet",disabled:s,onPress:()=>c("/undo"),children:"Undo the la\
st changes…"}),n(y,{look:"quiet",disabled:s,onPress:()=>r.say("/compact",[]),children:"Summarize the conversation"})]}),l==="/new"&&n(fe,{title:"Start over?",
confirm:"Start over",onConfirm:()=>r?.say("/new",[]),onClose:()=>c(""),children:"The agent forgets everything said in this session so far. You can still read it\
."}),l==="/undo"&&n(fe,{title:"Undo the last changes?",confirm:"Undo",danger:!0,onConfirm:()=>r?.say("/undo",[]),onClose:()=>c(""),children:"This restores the s\
ession's files to how they were before the last turn that changed any."})]})}function ya({children:e,mark:t}){let o=J(null),r=J(!0),[s,i]=p(!1),a=()=>{let c=o.current;
c&&(c.scrollTop=c.scrollHeight)};return E(()=>{r.current=!0,a()},[t]),pe(()=>{r.current&&a()}),n("div",{class:"scroll-frame",children:[n("div",{ref:o,class:"scr\
oll",onScroll:()=>{let c=o.current;c&&(r.current=c.scrollHeight-c.scrollTop-c.clientHeight<60,i(!r.current))},tabIndex:0,role:"log","aria-label":"Messages","ari\
a-live":"off",children:n("div",{class:"column",children:e})}),s&&n("button",{type:"button",class:"button newest",onClick:()=>{r.current=!0,a()},children:"Latest\
 ↓"})]})}var ka=500,_a=4e3,Cn=e=>"seen "+e.name;function Sa(e){try{return JSON.parse(localStorage.getItem(Cn(e))??"")}catch{return}}function xa(e,t){let o=Object.entries(
t.looks),s=o.splice(0,Math.max(0,o.length-ka)).reduce((i,[,a])=>Math.max(i,a.at),t.since);try{localStorage.setItem(Cn(e),JSON.stringify({since:s,looks:Object.fromEntries(
o)}))}catch{}}var Pn=e=>Date.parse(e.updated)||0;function Ta(e,t){let o=e.looks[t.key],r=o?.at??e.since;return o?.entries!==t.entries&&Pn(t)>r}function kr(e,t,o){
let[r,s]=p(new Set),[i,a]=p(0),l=J({key:"",until:0});return E(()=>{let c=d=>d.key===Cn(e)&&a(u=>u+1);return addEventListener("storage",c),()=>removeEventListener(
"storage",c)},[]),E(()=>()=>{l.current={key:o,until:Date.now()+_a}},[o]),E(()=>{if(!t)return;let c=Sa(e),d=c??{since:t.reduce((f,m)=>Math.max(f,Pn(m)),0),looks:{}},
u=f=>f===o&&!document.hidden||f===l.current.key&&Date.now()<l.current.until,h=t.filter(f=>u(f.key)&&d.looks[f.key]?.entries!==f.entries);for(let f of h)delete d.
looks[f.key],d.looks[f.key]={entries:f.entries,at:Pn(f)};(!c||h.length>0)&&xa(e,d),s(new Set(t.filter(f=>Ta(d,f)).map(f=>f.key)))},[t,o,i]),r}var Ft=60;function _r({me:e,session:t,title:o,at:r}){let[s,i]=p(null),[a,l]=p(null),c=J(new AbortController),d=async(m,b)=>{let{entries:w,last:_}=await vn(t,m-1,
b,c.current.signal);return{entries:w,from:m,to:b,last:_}},u=()=>{l(null),d(Math.max(1,r-Ft),r+Ft).then(i,m=>c.current.signal.aborted||l(m))};E(()=>(u(),()=>c.current.
abort()),[]);let h=async m=>{let b=await d(Math.max(1,m.from-Ft),m.from-1);i({...m,entries:[...b.entries,...m.entries],from:b.from})},f=async m=>{let b=await d(
m.to+1,m.to+Ft);i({...m,entries:[...m.entries,...b.entries],to:b.to,last:b.last})};return n("section",{class:"conversation","aria-label":"Conversation",children:[
n("div",{class:"head",children:[n("a",{class:"back",href:X("chat"),"aria-label":"All sessions",children:"‹"}),n("div",{class:"head-title",children:[n("h1",{children:o||
we(t)}),n("div",{class:"faint",children:"An earlier part of the conversation"})]}),n("a",{class:"button",href:X("chat",t),children:"Latest messages"})]}),n("div",
{class:"scroll-frame",children:n("div",{class:"scroll",tabIndex:0,role:"log","aria-label":"Messages","aria-live":"off",children:n("div",{class:"column",children:[
n(M,{error:a,again:u}),!s&&!a&&n(se,{}),s&&s.from>1&&n("div",{class:"earlier",children:n(y,{look:"quiet",onPress:()=>h(s),onError:l,children:"Show earlier messa\
ges"})}),s&&n(Ea,{entries:s.entries,session:t,at:r,me:e}),s&&!s.last&&n("div",{class:"earlier",children:n(y,{look:"quiet",onPress:()=>f(s),onError:l,children:"S\
how later messages"})})]})})})]})}function Ea({entries:e,session:t,at:o,me:r}){let s=J(null),i=wn(e,t,!0);return pe(()=>{let a=[...s.current?.querySelectorAll("\
[data-n]")??[]],l=a.findLast(c=>Number(c.dataset.n)<=o)??a[0];l&&(l.classList.add("sought"),l.tabIndex=-1,l.focus({preventScroll:!0}),l.scrollIntoView({block:"c\
enter"}))},[]),n("div",{ref:s,class:"past",children:[i.length===0&&n(re,{children:"These messages have been erased."}),i.map(a=>"blocks"in a?n(Ee,{session:t,turn:a,
version:a.blocks.length,sent:[],said:[],asks:a.asks??[],beside:[],readJob:()=>{},me:r,numbered:!0},a.id):n(De,{said:[{spoken:a}],me:r},a.id))]})}var Pa=2,Ca=300;function Sr(e){return e.trim().length>=Pa}function xr({words:e,shown:t}){let[o,r]=p("");return E(()=>{let s=setTimeout(()=>r(e),Ca);return()=>clearTimeout(
s)},[e]),n("section",{class:"found","aria-label":"Messages",children:[n("h2",{children:"What was said"}),o?n(Aa,{words:o,stale:o!==e,shown:t}):n(se,{})]})}function Aa({
words:e,stale:t,shown:o}){let{value:r,error:s,again:i}=B(l=>k(["search"],{q:e,limit:20},l).then(({hits:c})=>({words:e,hits:c})),e),a=!t&&r?.words===e;return n("\
div",{"aria-busy":!a&&!s,children:[n(M,{error:!t&&s,again:i}),!r&&!s&&n(se,{}),a&&r.hits.length===0&&n(re,{children:"No messages found with these words."}),n("u\
l",{children:r?.hits.map(l=>n(Ja,{hit:l,current:`${l.session} ${l.n}`===o},`${l.session} ${l.n}`))})]})}function Ja({hit:e,current:t}){return n("li",{children:[
n("a",{href:X("chat",e.session,String(e.n)),"aria-current":t?"page":void 0,children:[n("span",{class:"passage",children:e.text}),e.untrusted&&n("span",{class:"b\
adge warn",children:"strangers may have written it"}),n("span",{class:"line faint",children:[n("span",{class:"line-title",children:[Ma(e)," · ",e.title||we(e.session)]}),
n(T,{at:e.at})]})]}),e.link&&mr(e.link)&&n("a",{class:"there",href:e.link,target:"_blank",rel:"noopener noreferrer","aria-label":`Open where it was said: ${e.text.
slice(0,60)}`,children:"Open where it was said"})]})}function Ma(e){return e.kind==="text"?"agent":e.kind==="summary"?"summary":e.tool||e.name||e.person||e.kind}var Ba=3e4;function Tr(e){let[t,o]=p({running:new Set,waiting:new Set}),r=J(()=>{});return _t(["turn_start","parked","turn_complete","turn_error","ask","ask_res\
olved"],()=>r.current()),E(()=>{let s=new AbortController,i=!1,a=!1;r.current=()=>{s.signal.aborted||(a=i,!i&&(i=!0,Oa(e,s.signal).then(o,c=>s.signal.aborted||o(
d=>({...d,error:Je(c)}))).finally(()=>{i=!1,a&&r.current()})))},r.current();let l=setInterval(()=>!document.hidden&&r.current(),Ba);return()=>{s.abort(),clearInterval(
l)}},[]),{...t,again:()=>r.current()}}async function Oa(e,t){let o=k(["sessions"],{order:"desc",limit:200},t),r=e.may.read?k(["status"],{},t):Promise.resolve(void 0),
[{sessions:s},i]=await Promise.all([o,r]);return{sessions:s,running:new Set(i?.turns?.list.map(a=>a.session)),waiting:new Set(i?.asks?.list.map(a=>a.session))}}
function Er({known:e,unread:t,shown:o,at:r}){let[s,i]=p(""),{sessions:a,error:l}=e,c=s.trim().toLowerCase(),d=a?.filter(u=>!c||`${u.title??""} ${u.key}`.toLowerCase().
includes(c));return n("nav",{class:"sessions","aria-label":"Sessions",children:[n("div",{class:"sessions-top",children:[n("input",{type:"search","aria-label":"F\
ilter sessions and search messages",placeholder:"Search",value:s,onInput:u=>i(u.currentTarget.value)}),n("a",{class:"button main",href:X("chat"),"aria-current":o===
""?"page":void 0,children:"New chat"})]}),n(M,{error:l}),!a&&!l&&n(se,{}),d?.length===0&&n(re,{children:c?"No matching sessions.":"No conversations yet."}),n("u\
l",{children:d?.map(u=>n(La,{session:u,current:u.key===o,known:e,unread:t.has(u.key)},u.key))}),Sr(s)&&n(xr,{words:s.trim(),shown:r>0?`${o} ${r}`:""})]})}function La({
session:e,current:t,known:o,unread:r}){let{agent:s,channel:i}=ae(e.key),a=o.waiting.has(e.key),l=!a&&o.running.has(e.key);return n("li",{children:n("a",{href:X(
"chat",e.key),"aria-current":t?"page":void 0,children:[n("span",{class:"line",children:[r&&n("span",{class:"unread",role:"img","aria-label":"new"}),n("span",{class:"\
line-title"+(r?" strong":""),children:e.title||we(e.key)}),a&&n("span",{class:"badge warn",children:"waiting"}),l&&n("span",{class:"dot",role:"img","aria-label":"\
working"})]}),n("span",{class:"line faint",children:[n("span",{children:[i,s!=="main"&&` · ${s}`]}),n(T,{at:e.updated})]})]})})}function Pr({me:e,rest:t}){let o=t[0]??"",r=Number(t[1])||0,s=Tr(e),i=kr(e,s.sessions,o),a=J(new Map),l=s.sessions?.find(d=>d.key===o)?.title??"",c=(d,u)=>{let h=Co(
e);a.current.set(h,[je(h,d,u)]),Me("chat",h)};return n("div",{class:"chat "+(o?"one":"all"),children:[n(Er,{known:s,unread:i,shown:o,at:r}),o&&r>0?n(_r,{me:e,session:o,
title:l,at:r},o+" "+r):o?n(yr,{me:e,session:o,title:l,begun:a.current.get(o)??[],onActivity:s.again},o):n(Xa,{mayTalk:e.may.agent,onSay:c})]})}function Xa({mayTalk:e,
onSay:t}){return e?n("section",{class:"conversation beginning","aria-label":"New chat",children:[n("div",{class:"hello",children:[n("h1",{children:"What can the\
 agent do for you?"}),n("p",{class:"faint",children:"Your first message starts a new session. Press Enter to send, Shift+Enter for a new line."})]}),n(gt,{session:"",
running:!1,onSay:t,onStop:()=>{}})]}):n("section",{class:"conversation",children:n("p",{class:"empty",children:"Select a session to read it."})})}var Da={builtin:"built in",mcp:"MCP server",skill:"skill"},Cr=160;function Ar({me:e}){let o=B(r=>k(["status"],{brief:!0},r),"").value?.role!=="gateway";return n(
O,{title:"Agents",about:"What the bot has: its agents, their tools and skills, and where they may send messages.",children:[!o&&n("p",{class:"note",children:"Th\
is page comes from a gateway, which runs no turns: it doesn't know which tools work where turns run, and lists no skills."}),n($a,{works:o}),n(Na,{}),e.may.admin&&
n("p",{class:"aside",children:["To accept new tools of MCP servers, see ",n("a",{href:X("mcp"),children:"MCP servers"}),"."]}),e.may.admin&&o&&n(Ra,{}),n(Ia,{})]})}
function $a({works:e}){let t=B(o=>k(["agents"],{},o),"");return n(V,{read:t,rows:o=>o.agents,label:"Agents",id:o=>o.name,empty:"There are no agents.",columns:[{
title:"Agent",cell:o=>n(g,{children:[n("strong",{children:n(S,{of:o.name})})," ",e&&!o.answers&&n(A,{look:"bad",children:"no model"})]})},{title:"Models",cell:o=>n(
$e,{of:o.models.map(r=>r.name??r.setting)})},{title:"Capabilities",cell:o=>o.capabilities.length>0?o.capabilities.join(", "):"none"},{title:"Tools",cell:o=>C(o.
tools.length),number:!0},{title:"May message",cell:o=>n($e,{of:o.may_message})},{title:"Cap per day",cell:o=>o.microdollars_day?te(o.microdollars_day):"none",number:!0}]})}
function $e({of:e}){return e.length>0?n(S,{of:e.join(", ")}):n(g,{children:"none"})}function Na(){let[e,t]=p(""),o=B(r=>k(["tools"],{},r),"");return n(N,{title:"\
Tools",wide:!0,children:[n(bt,{label:"Find tools",value:e,set:t}),n(V,{read:o,rows:r=>r.tools.filter(s=>vt(e,s.name,s.description,s.permission??"",...s.agents)),
label:"Tools that agents have; calls are those in this process since it started",id:r=>r.name,empty:e?"No matching tools.":"No agent has any tools.",columns:[{title:"\
Tool",cell:r=>n(g,{children:[n("code",{children:v(r.name)}),n("br",{}),n("span",{class:"aside",children:Da[r.origin]??r.origin})]})},{title:"Needs",cell:r=>r.permission??
"nothing"},{title:"Agents",cell:r=>n($e,{of:r.agents})},{title:"Calls",cell:r=>C(r.calls),number:!0},{title:"Failed",cell:r=>C(r.failed),number:!0},{title:"Desc\
ription",cell:r=>n(Jr,{of:r.description})}]})]})}function Jr({of:e}){let t=v(e);return t.length<=Cr?n("span",{class:"saying",children:t}):n("details",{children:[
n("summary",{children:[t.slice(0,Cr),"…"]}),n("span",{class:"saying",children:t})]})}function Ra(){let e=B(t=>k(["skills"],{},t),"");return n(N,{title:"Skills",
wide:!0,children:n(V,{read:e,rows:t=>t.skills,label:"Your skills",id:t=>t.name,empty:"You have no skills. See docs/skills.md to add one.",columns:[{title:"Skill",
cell:t=>n(g,{children:[n("strong",{children:n(S,{of:t.name})})," ",t.trusted&&n(A,{look:"good",children:"trusted"})]})},{title:"Agents",cell:t=>n($e,{of:t.agents})},
{title:"Tools",cell:t=>n($e,{of:t.tools})},{title:"Folder",cell:t=>n("code",{class:"name",children:v(t.folder)})},{title:"Description",cell:t=>n(Jr,{of:t.description})}]})})}
function Ia(){let e=B(t=>k(["targets"],{},t),"");return n(N,{title:"Targets",wide:!0,children:n(V,{read:e,rows:t=>t.targets,label:"Targets of messages",id:t=>t.
name,empty:"No targets are configured. A target is a name for one or more addresses.",columns:[{title:"Target",cell:t=>n("strong",{children:n(S,{of:t.name})})},
{title:"Addresses",cell:t=>n($e,{of:t.to})}]})})}function Mr({decided:e}){let t=B(o=>k(["audit"],{kind:"approval",order:"desc",limit:20},o),String(e));return n(N,{title:"Recent decisions",wide:!0,children:n(V,
{read:t,rows:o=>o.records,label:"Decisions made on this page and by programs, newest first",id:o=>String(o.id),empty:"No decisions here yet. For decisions that \
people made in chats, see the tool calls in the audit.",columns:[{title:"When",cell:o=>n(T,{at:o.at})},{title:"Who",cell:o=>n(S,{of:o.by})},{title:"Decision",cell:o=>n(
A,{look:o.result==="denied"?"bad":"good",children:v(o.result)})},{title:"What",cell:o=>n(g,{children:[o.tool&&n("code",{children:v(o.tool)})," ",n("span",{class:"\
aside",children:n(S,{of:o.detail})})]})},{title:"Session",cell:o=>n(F,{of:o.session})}]})})}var Fa=40;function Br({me:e,rest:t}){let o=t[0]??"",r=Q(),[s,i]=p(0),a=R(d=>k(["asks"],{},d),"",20,["ask","ask_resolved"]),l=a.value?.asks,c=d=>{r.say(Ua(d)),i(
u=>u+1),a.again()};return n(O,{title:"Approvals",done:r,about:"What turns are waiting for. Nothing runs until someone decides. Opening a link to a request never\
 decides it.",children:[n(L,{...a}),l&&o&&!l.some(d=>d.id===o)&&n("p",{class:"note",children:["The request ",n("code",{children:v(o)})," isn't open. Someone dec\
ided it, it expired, or you can't see it."]}),l?.length===0&&n(re,{children:"No open requests. When a tool call needs approval or the agent has a question, you'\
ll see it here."}),l?.map(d=>n(Wa,{ask:d,me:e,named:d.id===o,done:c},d.id)),e.may.admin&&n(Mr,{decided:s})]})}function Ua(e){if(e.kind==="question")return"Answe\
r sent. The agent continues now.";let t=v(e.tool??"the call");return e.answer==="deny"?`You denied ${t}. The agent continues without it.`:`You approved ${t}${e.
answer==="session"?" for this session":""}. It's running now.`}function Wa({ask:e,me:t,named:o,done:r}){let s=J(null);E(()=>{o&&(s.current?.scrollIntoView({block:"\
start"}),s.current?.focus({preventScroll:!0}))},[o]);let i="request-"+e.id;return n("article",{ref:s,class:"request"+(o?" named":""),"aria-labelledby":i,tabIndex:-1,
children:[n("h2",{id:i,children:n(Ot,{ask:e})}),n("p",{class:"aside",children:["For ",n(S,{of:e.person})," in ",n(F,{of:e.session}),"; asked ",n(T,{at:e.at}),",\
 expires ",n(T,{at:e.expires})," ",t.may.admin&&n(K,{of:e.turn})]}),e.to&&e.to.length>0&&n("p",{class:"aside",children:["Also asked in ",e.to.map(v).join(", "),
"."]}),n(Lt,{ask:e,me:t,most:Fa,onDone:r})]})}var Ha=["turn","refusal","tool","pairing","export","replay","forget","job","approval","schedule","operator","memory","sign_in"];function Or({rest:e}){let[t,o]=p(
{kind:"",session:e[0]??"",person:""}),[r,s]=p([]),i=r.at(-1),a=B(c=>k(["audit"],{...t,order:"desc",limit:50,after:i},c),JSON.stringify([t,i]));return n(O,{title:"\
Audit",about:"What happened, newest first.",children:[n(qa,{filter:t,choose:c=>{o(c),s([])},refresh:a.again}),n(L,{...a}),a.value&&n(za,{records:a.value.records}),
a.value&&n("div",{class:"after",children:[r.length>0&&n(y,{onPress:()=>s(r.slice(0,-1)),children:"Newer"}),a.value.next!==void 0&&n(y,{onPress:()=>s([...r,a.value?.
next??0]),children:"Older"})]})]})}function qa({filter:e,choose:t,refresh:o}){let[r,s]=p(e.session),[i,a]=p(e.person),l=()=>{let c={...e,session:r.trim(),person:i.
trim()};JSON.stringify(c)===JSON.stringify(e)?o():t(c)};return n("form",{class:"filters",onSubmit:c=>{c.preventDefault(),l()},children:[n("label",{children:["Ki\
nd",n("select",{value:e.kind,onChange:c=>t({...e,kind:c.currentTarget.value}),children:[n("option",{value:"",children:"All"}),Ha.map(c=>n("option",{value:c,children:c.
replace("_"," ")},c))]})]}),n("label",{children:["Session",n("input",{value:r,placeholder:"main:telegram:42",onInput:c=>s(c.currentTarget.value)})]}),n("label",
{children:["Person",n("input",{value:i,placeholder:"telegram:42",onInput:c=>a(c.currentTarget.value)})]}),n("button",{class:"button",type:"submit",children:"App\
ly"})]})}function za({records:e}){return n(z,{label:"What happened, newest first",rows:e,id:t=>String(t.id),empty:"No matching records. The audit lists what age\
nts, people and programs did.",columns:[{title:"When",cell:t=>n(T,{at:t.at})},{title:"Kind",cell:t=>t.kind.replace("_"," ")},{title:"Who",cell:t=>n(S,{of:t.by})},
{title:"Where",cell:t=>t.session?n(F,{of:t.session}):n(S,{of:t.address})},{title:"Result",cell:t=>n(Ka,{of:t})},{title:"Details",cell:t=>n(Ya,{of:t})}]})}var ja=new Set(
["ok","done","answered","admitted","replayed","signed in","read","erased","changed","offered","login","accepted","approved","approved for the session"]),Va=new Set(
["failed","given_up","timeout","permission_denied","denied"]);function Ka({of:e}){let t=ja.has(e.result)?"good":Va.has(e.result)?"bad":void 0;return n(g,{children:[
n(A,{look:t,children:[v(e.result),e.exit_code!==void 0&&` (${e.exit_code})`]})," ",(e.kind==="tool"||e.kind==="turn"||e.kind==="job")&&n("span",{class:"aside",children:Z(
e.elapsed_ms)})]})}function Ya({of:e}){let t=e.used?[Ga(e.used),e.detail].filter(Boolean).join("; "):e.kind==="refusal"?Za(e):e.detail,o=e.turn??e.messages?.at(
-1);return n(g,{children:[e.tool&&n("code",{children:v(e.tool)})," ",t&&n(S,{of:t})," ",o&&n(K,{of:o}),e.arguments!==void 0&&e.arguments!==null&&n("details",{children:[
n("summary",{children:"Arguments"}),n(yt,{of:e.arguments,label:"Arguments"})]})]})}function Ga(e){let t=[e.model,D(e.model_calls,"model call"),D(e.calls,"tool c\
all"),C(e.input)+" tokens in",C(e.output)+" out"];return e.microdollars!==void 0&&t.push(te(e.microdollars)),t.filter(Boolean).join(", ")}function Za(e){return D(
e.count??e.messages?.length??1,"message")+(e.detail?"; "+e.detail:"")}function Lr({me:e}){let t=Q(),o=B(s=>k(["sign-ins"],{},s),""),r=oe(s=>({title:s.current?"Sign out here?":"Sign out this browser?",confirm:"Sign out browser",text:n(
g,{children:[Ut(s.device)," (",n(S,{of:s.caller}),") will need to sign in again. ",s.current&&"That's the browser you're using now."]}),act:async()=>{await G(["\
sign-ins",s.id]),t.say(`You signed out ${Ut(s.device)} (${v(s.caller)}).`),o.again()}}));return n(O,{title:"Browsers",done:t,about:e.may.admin?"Browsers that ar\
e signed in to this page.":"Browsers that are signed in to this page with your token.",children:[n(V,{read:o,rows:s=>s.sign_ins,label:"Signed-in browsers, most \
recently used first",id:s=>s.id,empty:"No browsers are signed in.",columns:[{title:"Browser",cell:s=>n(g,{children:[n("span",{title:v(s.device),children:Ut(s.device)}),
" ",s.current&&n(A,{look:"good",children:"this browser"})]})},{title:"Who",cell:s=>n(S,{of:s.caller})},{title:"Signed in",cell:s=>n(T,{at:s.began})},{title:"Las\
t used",cell:s=>n(T,{at:s.seen})},{title:"Actions",cell:s=>n(y,{look:"danger",onPress:()=>r.ask(s),label:`Sign out ${Ut(s.device)} (${s.caller})`,children:"Sign\
 out…"})}]}),r.dialog]})}function Ut(e){let t=s=>s.find(([,i])=>i.test(e))?.[0],o=t([["Edge",/Edg/],["Opera",/OPR/],["Firefox",/Firefox|FxiOS/],["Chrome",/Chrome|CriOS/],
["Safari",/Safari/]]),r=t([["Android",/Android/],["iPhone",/iPhone/],["iPad",/iPad/],["Windows",/Windows/],["macOS",/Mac OS X/],["Linux",/Linux/]]);return o?r?`${o}\
 on ${r}`:o:v(e)||"Unknown browser"}function Dr(){let[e,t]=p(""),[o,r]=p(!1),s=B(a=>k(["config"],{},a),""),i=a=>(!o||a.from!=="default")&&vt(e,a.key,Xr(a),a.from);return n(O,{title:"Configuration",
about:"The settings in force. To change one, edit the file and send SIGHUP to the server, or restart it.",children:[s.value&&n("p",{class:"aside",children:["Fil\
e: ",n(S,{of:s.value.file||"none"}),n("br",{}),"Home: ",n(S,{of:s.value.home})]}),s.value?.notices?.map(a=>n("p",{class:"note warn",children:v(a)},a)),n(bt,{label:"\
Find settings",value:e,set:t,children:n("label",{class:"choice",children:[n("input",{type:"checkbox",checked:o,onChange:a=>r(a.currentTarget.checked)})," Hide d\
efaults"]})}),n(V,{read:s,rows:a=>a.settings.filter(i),label:"Settings in force; secrets are ***",id:a=>a.key,empty:"No matching settings.",columns:[{title:"Set\
ting",cell:a=>n(g,{children:[n("code",{class:"name",children:v(a.key)})," ",a.no_effect&&n(A,{look:"warn",children:"no effect yet"})]})},{title:"Value",cell:a=>n(
"code",{class:"name",children:v(Xr(a))})},{title:"From",cell:a=>a.from==="default"?n("span",{class:"aside",children:"default"}):n(S,{of:a.from})}]})]})}function Xr(e){
return JSON.stringify(e.value)}var Qa=100;function $r({me:e}){let t=Q(),[o,r]=p(""),[s,i]=p(""),[a,l]=p(null),c=R(b=>k(["dead-letters"],{topic:o,after:s,order:"desc",limit:Qa},b),o+" "+s,30,[
"dead_letter"]),d=el(e.may.read),u=b=>{r(b),i("")},h=b=>{t.say(b),l(null),c.again()},f=async b=>{let{id:w}=await H(["dead-letters",b.topic,b.id,"replay"]);h(`Re\
played as ${w}.`)},m=oe(b=>({title:"Forget this message?",confirm:"Forget it",text:n(g,{children:["This deletes the message ",n(S,{of:b.id})," for ",n(S,{of:b.key}),
". You can't undo it."]}),act:async()=>{await G(["dead-letters",b.topic,b.id]),h(`Forgot the dead letter ${b.id}.`)}}));return n(O,{title:"Dead letters",done:t,
about:"Messages that couldn't be delivered or answered after several tries. Once you've fixed the cause, you can replay them.",children:[n(tl,{topics:d,chosen:o,
choose:u}),n(L,{...c}),c.value&&n(nl,{letters:c.value.letters,look:l,replay:f,drop:m.ask,fail:t.fail}),c.value&&n(ol,{page:c.value,topic:o,after:s,go:i}),a&&n(rl,
{of:a,close:()=>l(null)},a.topic+" "+a.id),m.dialog]})}function el(e){return(B(async o=>e?(await k(["status"],{brief:!0},o)).topics:[],"").value??[]).filter(o=>o.
dead>0)}function tl({topics:e,chosen:t,choose:o}){return e.length<2&&!t?null:n("div",{class:"filters",children:n("label",{children:["Topic",n("select",{value:t,
onChange:r=>o(r.currentTarget.value),children:[n("option",{value:"",children:"All"}),e.map(r=>n("option",{value:r.topic,children:[r.topic," (",C(r.dead),")"]},r.
topic))]})]})})}function nl({letters:e,look:t,replay:o,drop:r,fail:s}){return n(z,{label:"Dead letters, newest first within each topic",rows:e,id:i=>i.topic+" "+
i.id,empty:"No dead letters. Messages that can't be delivered or answered after several tries show up here.",columns:[{title:"Gave up",cell:i=>n(T,{at:i.buried_at})},
{title:"For",cell:i=>n(g,{children:[n(S,{of:i.key}),n("br",{}),n("span",{class:"aside",children:n(S,{of:i.topic})})]})},{title:"Reason",cell:i=>v(i.reason)},{title:"\
Attempts",cell:i=>C(i.attempts),number:!0},{title:"Size",cell:i=>j(i.bytes),number:!0},{title:"Message",cell:i=>n("div",{class:"rowactions",children:[n(y,{onPress:()=>t(
i),label:`View ${i.id}`,children:"View"}),n(y,{onPress:()=>o(i),onError:s,label:`Replay ${i.id}`,children:"Replay"}),n(y,{look:"danger",onPress:()=>r(i),label:`\
Forget ${i.id}`,children:"Forget…"})]})}]})}function ol({page:e,topic:t,after:o,go:r}){return e.more&&!t?n("p",{class:"none after",children:"There are more. C\
hoose a topic to see them all."}):n(Oe,{after:o,next:e.next,go:r})}function rl({of:e,close:t}){let o=B(r=>k(["dead-letters",e.topic,e.id],{},r),e.topic+" "+e.id);
return n(Be,{title:"Message",close:t,children:[n("p",{class:"aside",children:[n(S,{of:e.id})," ",n(K,{of:e.id})]}),n(L,{...o}),o.value&&n(yt,{of:o.value.message??
"This message isn't JSON, so it can't be shown.",label:"The message"})]})}var sl=1e3;function Rr(){let e=B(a=>k(["doctor"],{},a),""),t=e.value,[o,r]=p(!1),s=o||(t?.running??!1);E(()=>{if(r(!1),!t?.running)return;let a=setTimeout(e.again,
sl);return()=>clearTimeout(a)},[t,e.error]);let i=()=>{r(!0),e.again()};return n(O,{title:"Doctor",about:"What the server finds when it checks its settings, its\
 data, the model and the platforms, as parley doctor does. This takes a few seconds, and asks the model something.",children:[n("div",{class:"filters",children:n(
il,{checkup:t,running:s,again:i})}),n(M,{error:e.error,again:i}),n("p",{class:"aside",children:[n("span",{role:"status",children:s||!t&&!e.error?"Checking…":t&&
al(t.findings)})," ",t?.at&&n(g,{children:["Checked ",n(T,{at:t.at}),", in ",Z(t.took_ms),"."]})]}),t?.at&&n(cl,{of:t.findings})]})}function il({checkup:e,running:t,
again:o}){let[,r]=p(0),s=e?.again?Math.max(0,new Date(e.again).getTime()-Date.now()):0;return E(()=>{if(s===0)return;let i=setTimeout(()=>r(a=>a+1),Math.min(s,1e3));
return()=>clearTimeout(i)}),n(g,{children:[n(y,{look:"main",disabled:!e||t||s>0,onPress:o,children:"Check again"}),s>0&&!t&&n("span",{class:"aside",children:["i\
n ",Z(Math.ceil(s/1e3)*1e3)]})]})}function al(e){let t=e.filter(o=>o.state==="wrong").length;return t>0?D(t,"thing")+(t===1?" needs":" need")+" a change.":"Ever\
ything works."}var ll={wrong:"bad",note:"warn",ok:"good"},Nr=["wrong","note","ok"];function cl({of:e}){let t=e.map((o,r)=>({...o,n:r})).sort((o,r)=>Nr.indexOf(o.
state)-Nr.indexOf(r.state)||o.n-r.n);return n(z,{label:"What was checked, problems first",rows:t,id:o=>String(o.n),empty:"Nothing was checked.",columns:[{title:"\
Part",cell:o=>n("strong",{class:"name part",children:v(o.part)})},{title:"State",cell:o=>n(A,{look:ll[o.state],children:o.state})},{title:"Finding",cell:o=>n("s\
pan",{class:"name",children:v(o.detail)})},{title:"What to do",cell:o=>o.remedy&&n("span",{class:"name",children:v(o.remedy)})}]})}var dl=100,ul={ok:"good",failed:"bad",unknown:"bad"};function Ir({me:e,rest:t}){let o=Q(),[r,s]=p(t[0]??""),[i,a]=p(null),l=R(d=>k(["jobs"],{session:r,limit:dl},
d),r,15,["job"]),c=oe(d=>({title:"Stop this job?",confirm:"Stop job",text:n(Dt,{of:d,session:d.session}),act:async()=>{await G(["jobs",d.id]),o.say(`Asked ${d.id}\
 to stop.`),l.again()}}));return n(O,{title:"Jobs",done:o,about:"Commands that agents run in the background, and those that ended in the last 30 days.",children:[
n(ml,{session:r,choose:s}),n(L,{...l}),l.value&&n(pl,{jobs:l.value.jobs,look:a,stop:e.may.admin?c.ask:void 0}),l.value?.more&&n("p",{class:"none after",children:"\
There are more. Choose a session to see its jobs."}),i&&n(gl,{of:i,close:()=>a(null)},i.id),c.dialog]})}function ml({session:e,choose:t}){let[o,r]=p(e);return n(
"form",{class:"filters",onSubmit:s=>{s.preventDefault(),t(o.trim())},children:[n("label",{class:"long",children:["Session",n("input",{value:o,placeholder:"main:\
telegram:42",spellcheck:!1,onInput:s=>r(s.currentTarget.value)})]}),n("button",{class:"button",type:"submit",children:"Apply"})]})}function pl({jobs:e,look:t,stop:o}){
return n(z,{label:"Jobs, those that run first, then newest first",rows:e,id:r=>r.id,empty:"No jobs. A command that an agent runs in the background shows up here\
.",columns:[{title:"State",cell:r=>n(fl,{of:r})},{title:"Command",cell:r=>n("code",{class:"name",children:v(r.command)})},{title:"For",cell:r=>n(g,{children:[n(
S,{of:r.person}),n("br",{}),n(F,{of:r.session})]})},{title:"Started",cell:r=>n(T,{at:r.started})},{title:"Printed",cell:r=>j(r.printed),number:!0},{title:"Actio\
ns",cell:r=>n("div",{class:"rowactions",children:[n(y,{onPress:()=>t(r),label:`Output of ${r.id}`,children:"Output"}),o&&r.state==="running"&&!r.stopping&&n(y,{
look:"danger",onPress:()=>o(r),label:`Stop ${r.id}`,children:"Stop…"})]})}]})}function fl({of:e}){let[t,o]=Xt(e);return n(g,{children:[n(A,{look:ul[t],children:o}),
n("br",{}),e.state==="running"&&n("span",{class:"aside",children:["for ",n(de,{at:e.started}),"; times out ",n(T,{at:e.deadline})]}),e.ended&&n("span",{class:"a\
side",children:n(T,{at:e.ended})}),e.detail&&n("span",{class:"aside",children:[n("br",{}),v(e.detail)]})]})}function gl({of:e,close:t}){let o=R(s=>k(["jobs",e.id],
{},s),e.id,5,["job","job_output"]),r=o.value?.output??"";return n(Be,{title:"Output",close:t,children:[n("p",{class:"aside",children:n("code",{class:"name",children:v(
e.command)})}),n(L,{...o}),o.value&&!r&&n("p",{class:"none",children:["It printed nothing",o.value.state==="running"&&" yet","."]}),o.value&&r&&n(Ke,{of:r,label:`\
Output of ${e.id}`,above:`Printed ${j(o.value.printed)}; this is the end`})]})}function Fr(e,t){let o=e===void 0?[]:e.split(`
`),r=t.split(`
`),s=0;for(;s<o.length&&s<r.length&&o[s]===r[s];)s++;let i=0;for(;i<o.length-s&&i<r.length-s&&o.at(-1-i)===r.at(-1-i);)i++;let a=l=>({mark:" ",text:l});return[...r.
slice(0,s).map(a),...hl(o.slice(s,o.length-i),r.slice(s,r.length-i)),...r.slice(r.length-i).map(a)]}function hl(e,t){let o=l=>({mark:"-",text:l}),r=l=>({mark:"+",
text:l});if(e.length===0||t.length===0||e.length*t.length>4e6)return[...e.map(o),...t.map(r)];let s=Array.from({length:e.length+1},()=>new Uint32Array(t.length+
1)),i=(l,c)=>s[l]?.[c]??0;for(let l=e.length-1;l>=0;l--){let c=s[l];if(c)for(let d=t.length-1;d>=0;d--)c[d]=e[l]===t[d]?i(l+1,d+1)+1:Math.max(i(l+1,d),i(l,d+1))}
let a=[];for(let l=0,c=0;l<e.length||c<t.length;){let[d,u]=[e[l],t[c]];d!==void 0&&d===u?(a.push({mark:" ",text:d}),l++,c++):d!==void 0&&(u===void 0||i(l+1,c)>=
i(l,c+1))?(a.push(o(d)),l++):u!==void 0&&(a.push(r(u)),c++)}return a}function Jn(e,t){return H(["mcp",e,"accept"],{tool:t.name,digest:t.digest})}function Ur({server:e,tool:t,changed:o,renew:r,outcome:s,done:i}){let a=v(t.name),l=async()=>{
await Jn(e,t),s.say(`Accepted ${a}.`),i()};return n("section",{class:"request","aria-label":`${t.was?"Changed":"New"} tool ${a} of ${e}`,children:[n("div",{class:"\
between",children:[n("strong",{children:n("code",{children:a})}),n(A,{look:"warn",children:t.was?"changed":"new"})]}),n(Wt,{title:"Description",of:`${a} of ${e}`,
before:t.was?.description,now:t.description,isNew:!t.was}),n(Wt,{title:"Arguments",of:`${a} of ${e}`,before:t.was&&An(t.was),now:An(t),isNew:!t.was}),o?n("p",{class:"\
note warn",children:["The tool changed again while you were looking. ",n(y,{onPress:r,label:`Show ${a} again`,children:"Show it again"})]}):n(y,{look:"main",onPress:l,
onError:s.fail,label:`Accept ${a}`,children:"Accept"})]})}function An(e){return JSON.stringify(e.schema,null,2)}function Wt({title:e,of:t,before:o,now:r,isNew:s}){
let i={" ":"","+":"plus","-":"minus"},a=Fr(o===void 0?void 0:v(o),v(r)),l=a.some(c=>c.mark!==" ");return n("div",{class:"preview",children:[n("h3",{children:[e,
!s&&!l&&" (unchanged)"]}),n("pre",{tabIndex:0,role:"region","aria-label":`${e}: ${t}`,children:a.map((c,d)=>n("span",{class:"preview-line "+(s?"":i[c.mark]),children:(s?
"":c.mark+" ")+c.text+`
`},d))})]})}function Wr({server:e,tools:t}){return n("ul",{class:"items",children:t.map(o=>n("li",{children:n("details",{children:[n("summary",{children:n("code",
{children:n(S,{of:o.name})})}),n(Wt,{title:"Description",of:`${v(o.name)} of ${e}`,now:o.description,isNew:!0}),n(Wt,{title:"Arguments",of:`${v(o.name)} of ${e}`,
now:An(o),isNew:!0})]})},o.name))})}var bl=2e3;function Hr({server:e,done:t}){let[o,r]=p(null),[s,i]=p(null),a=async()=>{i(null),r(await H(["mcp",e,"login"]))},l=()=>{r(null),t()};return E(()=>{if(!o)
return;let c=new AbortController,d=async()=>{if(!document.hidden)try{(await k(["mcp",e,"login"],{id:o.id},c.signal)).done?l():Date.now()>Date.parse(o.until)&&(r(
null),i(new Error("The link has expired. Sign in again.")))}catch(h){c.signal.aborted||i(h)}},u=setInterval(()=>{d()},bl);return()=>{c.abort(),clearInterval(u)}},
[o]),n(g,{children:[n(M,{error:s}),o?n(vl,{begun:o,server:e,done:l}):n(y,{onPress:a,onError:i,label:`Sign in to ${e}`,children:"Sign in…"})]})}function vl({begun:e,
server:t,done:o}){let[r,s]=p(""),[i,a]=p(null),l=ce(),c=async()=>{await H(["mcp",t,"login"],{address:r.trim()}),o()},d=/^https?:\/\//i.test(e.url);return n("div",
{class:"note",children:n("div",{ref:l,tabIndex:-1,class:"opened",children:[n("p",{children:[d?n("a",{href:e.url,target:"_blank",rel:"noopener noreferrer",children:"\
Open the sign-in page"}):v(e.url)," The link expires ",n(T,{at:e.until}),"."]}),n("p",{children:["Your browser ends up at ",n("code",{children:v(e.ends)}),". If\
 it can't open that page, paste its address here."]}),n(M,{error:i}),n("form",{class:"filters",onSubmit:u=>{u.preventDefault(),r.trim()&&c().catch(a)},children:[
n("label",{class:"long",children:["Address of the last page",n("input",{value:r,autocomplete:"off",spellcheck:!1,onInput:u=>s(u.currentTarget.value)})]}),n(y,{disabled:!r.
trim(),onPress:c,onError:a,children:"Finish"})]})]})})}var wl={up:"up",down:"down",sign_in:"sign-in needed",untried:"not tried here"},yl={up:"good",down:"bad",sign_in:"warn",untried:void 0};function qr(){let e=Q(),t=R(
r=>k(["mcp"],{},r),"",15),o=t.value?.servers;return n(O,{title:"MCP servers",done:e,about:"Programs and services whose tools agents use. Agents can't use a new \
or changed tool until you accept it.",children:[n(L,{...t}),o?.length===0&&n(re,{children:"No MCP servers are configured. See docs/tools.md to add one."}),o?.map(
r=>n(kl,{of:r,outcome:e,again:t.again},r.name))]})}function kl({of:e,outcome:t,again:o}){let[r,s]=p(null),i="server-"+e.name,a=async()=>{let c=await H(["mcp",e.
name,"test"]);s(c),c.up?t.say(`${e.name} lists ${D(c.listed,"tool")}, after ${Z(c.ms)}.`):t.fail(new Error(`${e.name} can't be reached: ${v(c.error??"")}`)),o()},
l=()=>{t.say(`Signed in to ${e.name}.`),o()};return n("article",{class:"story","aria-labelledby":i,children:[n("h2",{id:i,children:[n(S,{of:e.name})," ",n(A,{look:yl[e.
state],children:wl[e.state]})]}),n("p",{class:"aside",children:[e.agents.length>0?`Used by ${e.agents.join(", ")}`:"No agent uses it",e.state==="untried"&&". Th\
is process hasn't tried to reach it; in a fleet, workers do"]}),e.error&&n("p",{class:"trouble",children:v(e.error)}),n("div",{class:"rowactions",children:[n(y,
{onPress:a,onError:t.fail,label:`Test ${e.name}`,children:"Test"}),e.sign_in&&e.state!=="up"&&n(Hr,{server:e.name,done:l},e.state)]}),r&&r.unusable.length>0&&n(
"ul",{class:"hints",children:r.unusable.map(c=>n("li",{children:[D(c.tools,"tool")," can't be used: ",c.reason," ",c.names&&n(S,{of:`(${c.names.join(", ")})`})]},
c.reason))}),n(_l,{server:e,outcome:t,again:o}),e.tools.length>0&&n("details",{children:[n("summary",{children:[D(e.tools.length,"tool")," in use"]}),n(Wr,{server:e.
name,tools:e.tools})]})]})}function _l({server:e,outcome:t,again:o}){let[,r]=p(0),s=J(new Map),i=new Map(e.aside.map(c=>[c.name,s.current.get(c.name)??c]));s.current=
i;let a=c=>{i.set(c.name,c),r(d=>d+1)},l=oe(c=>({title:`Accept ${D(c.length,"tool")}?`,confirm:"Accept all",text:n(g,{children:["Agents read what these tools sa\
y about themselves as if you had said it: ",n(S,{of:c.map(d=>d.name).join(", ")}),". Accept them only if you've read it."]}),act:async()=>{try{for(let d of c)await Jn(
e.name,d);t.say(`Accepted ${D(c.length,"tool")} of ${e.name}.`)}finally{o()}}}));return e.aside.length===0?null:n(g,{children:[n("div",{class:"between",children:[
n("h3",{children:[D(e.aside.length,"tool")," to accept"]}),e.aside.length>1&&n(y,{onPress:()=>l.ask([...i.values()]),label:`Accept all of ${e.name}`,children:"A\
ccept all…"})]}),e.aside.map(c=>n(Ur,{server:e.name,tool:i.get(c.name)??c,changed:i.get(c.name)?.digest!==c.digest,renew:()=>a(c),outcome:t,done:o},c.name)),l.
dialog]})}var Qe={session:"Conversation",person:"Person",agent:"Agent"},Sl={session:"main:telegram:42",person:"telegram:42",agent:"main"},zr=["turn_complete","turn_error"];
function jr({rest:e}){let t=Q(),[o,r]=p(""),[s="",i=""]=e,a=R(l=>k(["memory"],{after:o,limit:100},l),o,30,[...zr]);return n(O,{title:"Memory",done:t,about:"What\
 agents remember for all conversations, and about people. Agents read this with every message it applies to.",children:[n(xl,{scope:s,owner:i},s+" "+i),i&&n(Tl,
{scope:s,owner:i,outcome:t,changed:a.again},s+" "+i),n(N,{title:"All memories",wide:!0,children:[n(V,{read:a,rows:l=>l.memories,label:"Memories of agents and ab\
out people",id:l=>l.scope+" "+l.owner,empty:"Agents remember nothing about people, and nothing for all conversations.",columns:[{title:"Whose",cell:l=>n(g,{children:[
n("strong",{children:n(S,{of:l.owner})}),n("br",{}),n("span",{class:"aside",children:Vr(l.scope).toLowerCase()})]})},{title:"Size",cell:l=>j(l.bytes),number:!0},
{title:"From strangers",cell:l=>l.untrusted?n(A,{look:"warn",children:"maybe"}):"no"},{title:"Changed",cell:l=>n(T,{at:l.changed})},{title:"Actions",cell:l=>n("\
a",{href:X("memory",l.scope,l.owner),"aria-label":`View the memory of ${l.owner}`,children:"View"})}]}),n(Oe,{after:o,next:a.value?.next,go:r})]})]})}function Vr(e){
return e in Qe?Qe[e]:e}function xl({scope:e,owner:t}){let[o,r]=p(e in Qe?e:"session"),[s,i]=p(t),a=()=>Me("memory",o,s.trim());return n("form",{class:"filters",
onSubmit:l=>{l.preventDefault(),s.trim()&&a()},children:[n("label",{children:["Memory of",n("select",{value:o,onChange:l=>r(l.currentTarget.value),children:Object.
entries(Qe).map(([l,c])=>n("option",{value:l,children:c},l))})]}),n("label",{class:"long",children:[Qe[o],n("input",{value:s,placeholder:Sl[o],spellcheck:!1,onInput:l=>i(
l.currentTarget.value)})]}),n(y,{look:"main",disabled:!s.trim(),onPress:a,children:"Show"})]})}function Tl({scope:e,owner:t,outcome:o,changed:r}){let s=R(h=>k([
"memory",e,t],{},h),e+" "+t,30,[...zr]),[i,a]=p(null),l=()=>{s.again(),r()},c=h=>{o.say(h),a(null),l()},d=oe(h=>({title:"Erase this memory?",confirm:"Erase it",
text:n(g,{children:["This erases everything in the memory of ",n(S,{of:t}),". You can't undo it."]}),act:async()=>{await G(["memory",e,t],h.version).catch(f=>Kr(
f,l)),c(`Erased the memory of ${v(t)}.`)}})),u=s.value;return n(N,{title:`Memory of ${v(t)}`,wide:!0,children:[n(L,{...s}),u&&n(g,{children:[n("p",{class:"aside",
children:[e==="session"?n(g,{children:["Conversation ",n(F,{of:t})]}):Vr(e),u.content!==""&&n(g,{children:[", ",j(Mn(u.content))," of ",j(u.most_bytes)]})," ",u.
untrusted&&n(A,{look:"warn",children:"strangers may have written some of this"})]}),u.redacted&&n("p",{class:"note",children:"Secrets are hidden here. If you sa\
ve your edit, they're removed from the memory, too."}),u.content===""?n("p",{class:"none",children:"Nothing is remembered here."}):n(Ke,{of:u.content,label:"The\
 memory"}),i?n(El,{base:i,now:u,again:l,close:()=>a(null),saved:()=>c(`Saved the memory of ${v(t)}.`)}):n("div",{class:"after",children:[n(y,{onPress:()=>a(u),children:u.
content===""?"Write":"Edit"}),u.content!==""&&n(y,{look:"danger",onPress:()=>d.ask(u),children:"Erase…"})]})]}),d.dialog]})}function Kr(e,t){throw e instanceof
Y&&e.status===412&&t(),e}function Mn(e){return new TextEncoder().encode(e).length}function El({base:e,now:t,again:o,saved:r,close:s}){let[i,a]=p(e.content),[l,c]=p(
e.version),[d,u]=p(null),h=ce(),f=t.version!==l,m=Mn(i)>e.most_bytes,b=async()=>{u(null),await fo(["memory",e.scope,e.owner],{content:i},l).catch(w=>Kr(w,o)),r()};
return n("form",{class:"editor",onSubmit:w=>{w.preventDefault(),b().catch(u)},children:[n("label",{class:"long",children:["New text",n("textarea",{ref:h,rows:12,
value:i,onInput:w=>a(w.currentTarget.value)})]}),f&&n("div",{class:"note error",role:"alert",children:[n("span",{children:"This memory changed while you were ed\
iting it. What it says now is shown above. Copy what you need from there."}),n(y,{onPress:()=>{c(t.version),u(null)},children:"Replace it with my text"})]}),m&&
n("p",{class:"note error",role:"alert",children:["That's too long: ",j(Mn(i))," of ",j(e.most_bytes),"."]}),!f&&n(M,{error:d}),n("div",{class:"after",children:[
n(y,{look:"main",disabled:f||m||!i.trim()||i===t.content,onPress:b,onError:u,children:"Save"}),n(y,{onPress:s,children:"Cancel"})]})]})}function Yr({tell:e}){let o=R(r=>k(["asks"],{},r),"",60,["ask","ask_resolved"]).value?.asks.length??0;return E(()=>e(o),[o]),o===0?null:n("span",{class:"badge w\
arn",children:[o,n("span",{class:"away",children:" open"})]})}function Ht({caps:e}){return e.length===0?n("p",{class:"none",children:"No cap is in effect, because no model has a known price. See docs/models.md to set price\
s."}):n("ul",{class:"caps",children:e.map(t=>n("li",{children:n(Pl,{cap:t})},t.of+t.span))})}function Pl({cap:e}){let{most_microdollars:t,spent_microdollars:o,reserved_microdollars:r}=e,
s=Math.max(0,t-o-r),i=l=>t>0?100*l/t:100,a=i(o+r);return n(g,{children:[n("span",{class:"between",children:[n("span",{title:e.setting,children:[e.of==="all"?"Ev\
eryone":n(S,{of:e.of}),", ",e.span==="day"?"today":"this month"]}),n("span",{children:[ze(o)," of ",ze(t)]})]}),n(kt,{spent:i(o),kept:i(r),look:a>=100?"over":a>=
80?"near":""}),n("span",{class:"aside",children:[s>0?`${ze(s)} left`:"nothing left",r>0&&`, ${ze(r)} reserved`]})]})}var Ne=720,Pe=120;function et({title:e,times:t,series:o,says:r,lines:s,summary:i}){return n("figure",{class:"chart",children:[n("figcaption",{children:[n("h3",{
children:e}),n("ul",{class:"legend",children:o.map(a=>n("li",{children:[n("svg",{class:"key "+a.look+(s?" line":""),viewBox:"0 0 14 10","aria-hidden":"true",focusable:"\
false",children:s?n("path",{d:"M0 5H14"}):n("rect",{width:"14",height:"10"})}),a.name]},a.name))})]}),n(Bn,{label:`${e}. ${i}`,times:t,series:o,says:r,tells:a=>Al(
o,a,r),lines:s}),n(Bl,{title:e,times:t,series:o,says:r})]})}function Bn({label:e,times:t,series:o,says:r,tells:s,lines:i}){let a=Math.max(...i?o.flatMap(c=>c.values.
map(d=>d??0)):t.map((c,d)=>Cl(o,d))),l=i?n(Ml,{times:t,series:o,most:a}):n(Jl,{times:t,series:o,most:a});return n(g,{children:[n("span",{class:"aside",children:r(
a)}),n("svg",{class:"drawing",viewBox:`0 0 ${Ne} ${Pe}`,preserveAspectRatio:"none",role:"img","aria-label":e,children:[n("rect",{class:"rule",width:Ne,y:Pe-1,height:"\
1"}),l,t.map((c,d)=>n("rect",{class:"over",x:d*Ne/t.length,width:Ne/t.length,height:Pe,children:n("title",{children:[c,": ",s(d)]})},d))]}),n("span",{class:"bet\
ween aside",children:[n("span",{children:t[0]}),n("span",{children:t.length>1&&t.at(-1)})]})]})}function Cl(e,t){return e.reduce((o,r)=>o+(r.values[t]??0),0)}function Al(e,t,o){
let r=e.flatMap(s=>s.values[t]?[`${s.name} ${o(s.values[t])}`]:[]);return r.length>0?r.join(", "):"nothing"}function Jl({times:e,series:t,most:o}){let r=Ne/e.length;
return n(g,{children:e.map((s,i)=>{let a=0;return t.map(l=>{let c=l.values[i]??0;if(c===0)return null;let d=Math.max(2,Pe*c/o);return a+=d,n("rect",{class:l.look,
x:i*r+r*.12,width:r*.76,y:Math.max(0,Pe-a),height:d},i+l.name)})})})}function Ml({times:e,series:t,most:o}){let r=Ne/e.length,s=i=>i.map((a,l)=>{if(a===null)return"";
let c=(l+.5)*r,d=Pe-2-(Pe-4)*a/o,u=i[l-1];return u==null&&(i[l+1]??null)===null?`M${c-r*.3} ${d}H${c+r*.3}`:`${u==null?"M":"L"}${c} ${d}`}).join("");return n(g,
{children:t.map(i=>n("path",{class:"line "+i.look,d:s(i.values)},i.name))})}function Bl({title:e,times:t,series:o,says:r}){let s=t.map((a,l)=>({time:a,at:l})).filter(
({at:a})=>o.some(l=>l.values[a])),i=[{title:"Time",cell:a=>a.time},...o.map(a=>({title:a.name,cell:l=>a.values[l.at]?r(a.values[l.at]??0):"–",number:!0}))];return n(
"details",{children:[n("summary",{children:["Numbers",n("span",{class:"away",children:[" of ",e]})]}),n(z,{label:e,columns:i,rows:s,id:a=>String(a.at),empty:"No\
thing was counted."})]})}var Ln=36e5,Re=24*Ln,qt={day:{title:"the last 24 hours",by:"hour",back:23*Ln,step:Ln},month:{title:"the last 30 days",by:"day",back:29*Re,step:Re},quarter:{title:"\
the last 90 days",by:"day",back:89*Re,step:Re}},Ol={hour:2e3,day:2e4};function Qr(){let[e,t]=p("day"),{by:o,back:r}=qt[e],s=()=>new Date(Date.now()-r).toISOString(),
i=R(a=>k(["activity"],{by:o,since:s()},a),e,60,["turn_complete","turn_error"],Ol[o]);return n(N,{title:"Over time",wide:!0,children:[n("div",{class:"filters",children:[
n("label",{children:["Show",n("select",{value:e,onChange:a=>t(a.currentTarget.value),children:Object.keys(qt).map(a=>n("option",{value:a,children:qt[a].title},a))})]}),
o==="day"&&n("span",{class:"aside",children:"Days are in UTC."})]}),n(L,{...i}),n("div",{class:"charts",children:[i.value&&n(Xl,{of:i.value,span:e}),n(Rl,{})]}),
i.value&&i.value.total.calls>0&&n($l,{tools:i.value.total.tools,more:i.value.total.more_tools})]})}function Ll(e,t){return t===Re?ge(e):new Date(e).toLocaleString(
"en-US",{weekday:"short",hour:"2-digit",minute:"2-digit",hourCycle:"h23"})}function Xl({of:e,span:t}){let{title:o,step:r}=qt[t],{turns:s}=e.total,i=s.failed+s.given_up;
if(i+s.done+s.stopped+s.refused===0&&e.total.calls===0)return n("p",{class:"none",children:["No turn has ended in ",o,". When the agent answers, you'll see here\
 how many answers there are, how long they take, and how its tools do."]});let l=new Map(e.sums.map(f=>[Date.parse(f.at),f])),c=an(Date.parse(e.since),Date.now(),
r),d=c.map(f=>Ll(f,r)),u=f=>c.map(m=>{let b=l.get(m);return b?f(b):null}),h=[{name:"Answered",look:"c-main",values:u(f=>f.turns.done)},{name:"Failed",look:"c-ba\
d",values:u(f=>f.turns.failed)},{name:"Given up",look:"c-warn",values:u(f=>f.turns.given_up)},{name:"Stopped",look:"c-faint",values:u(f=>f.turns.stopped)},{name:"\
Refused by a limit",look:"c-good",values:u(f=>f.turns.refused)}];return n(g,{children:[n(et,{title:"Answers and errors",times:d,series:h,says:C,summary:`In ${o}\
: ${D(s.done,"answer")}, ${C(i)} failed or given up, ${C(s.stopped)} stopped, ${C(s.refused)} refused.`}),n(Gr,{title:"Until the first text",of:e,times:d,each:u,
pick:f=>f.first_token}),n(Gr,{title:"Until the answer is complete",of:e,times:d,each:u,pick:f=>f.answer}),e.total.calls>0&&n(et,{title:"Calls of tools",times:d,
says:C,summary:`In ${o}: ${D(e.total.calls,"call")}, of which ${C(e.total.failed_calls)} did not succeed.`,series:[{name:"Succeeded",look:"c-main",values:u(f=>f.
calls-f.failed_calls)},{name:"Didn't succeed",look:"c-bad",values:u(f=>f.failed_calls)}]})]})}function Gr({title:e,of:t,times:o,each:r,pick:s}){let i=s(t.total);
if(i.count===0)return n("figure",{class:"chart",children:[n("figcaption",{children:n("h3",{children:e})}),n("p",{class:"none",children:"No answers yet."})]});let a=c=>r(
d=>s(d).count>0?s(d)[c]:null),l=[{name:"Half of them (p50)",look:"c-main",values:a("p50_ms")},{name:"95 in 100 (p95)",look:"c-warn dashed",values:a("p95_ms")}];
return n(et,{title:e,times:o,series:l,says:Z,lines:!0,summary:`Half of ${D(i.count,"answer")} took up to ${Z(i.p50_ms)}, and 95 in 100 up to ${Z(i.p95_ms)}.`})}
var Dl={failed:"failed",denied:"denied",timeout:"timed out",cancelled:"cancelled",unknown:"outcome unknown"};function $l({tools:e,more:t}){return n(g,{children:[
n("h3",{children:"Tools"}),n(z,{label:"Calls of tools and how they ended",columns:[{title:"Tool",cell:r=>n(S,{of:r.tool})},{title:"Calls",cell:r=>C(r.calls),number:!0},
{title:"Success",cell:r=>n(Nl,{of:r})},{title:"Other outcomes",cell:r=>Object.entries(r.outcomes).filter(([s,i])=>s!=="ok"&&i>0).map(([s,i])=>`${C(i)} ${Dl[s]??
s}`).join(", ")}],rows:e,id:r=>r.tool,empty:"No tool was called."}),t&&n("p",{class:"aside",children:"Other tools were called, too, but less often."})]})}function Nl({
of:e}){let t=100*(e.outcomes.ok??0)/e.calls;return n("span",{class:"success",children:[n("span",{children:[t===100?"100":Math.min(99,Math.floor(t)),"%"]}),n(kt,
{spent:t,look:t>=90?"":t>=50?"near":"over"})]})}var On=["c-main","c-good","c-warn","c-bad"],Zr=14;function Rl(){let e=ge(Date.now()),t=ge(Date.now()-(Zr-1)*Re),
o=R(a=>k(["usage"],{by:"day,model",from:t,to:e},a),t,300);if(!o.value)return o.error?n(L,{...o}):null;let r=o.value.usage.filter(a=>a.microdollars>0);if(r.length===
0)return null;let s=ft(t,e),i=r.reduce((a,l)=>a+l.microdollars,0);return n(et,{title:"Cost by day and model",times:s,series:Il(r,s),says:te,summary:`${te(i)} in\
 ${Zr} days, which are in UTC.`})}function Il(e,t){let o=new Map;for(let l of e)o.set(l.then??"",(o.get(l.then??"")??0)+l.microdollars);let r=[...o].sort((l,c)=>c[1]-
l[1]).map(([l])=>l),s=l=>t.map(c=>e.reduce((d,u)=>u.key===c&&l(u.then??"")?d+u.microdollars:d,0)||null),i=r.slice(0,On.length).map((l,c)=>({name:l||"unknown",look:On[c]??
"",values:s(d=>d===l)})),a=r.slice(On.length);return a.length>0&&i.push({name:"others",look:"c-faint",values:s(l=>a.includes(l))}),i}async function Fl(e){let t=ge(Date.now()),[o,r,s]=await Promise.all([k(["status"],{},e),Ul(e),k(["usage"],{by:"day",from:t,to:t},e)]);return{status:o,readiness:r,
usage:s}}async function Ul(e){let t=await He("/readyz",{signal:e});if(!t.ok&&t.status!==503)throw await Te(t);return await t.json()}function es({me:e}){let t=R(
Fl,"",5,["turn_start","parked","turn_complete","turn_error","ask","ask_resolved","dead_letter","job","channel"]),o=t.value;return n(O,{title:"Overview",children:[
n(L,{...t}),o&&n(g,{children:[n("p",{class:"about",children:["Parley ",o.status.version," (",o.status.role,"), up for ",n(de,{at:o.status.started})," ",n(Wl,{readiness:o.
readiness})]}),n(Hl,{now:o,me:e}),n("div",{class:"blocks",children:[n(zl,{status:o.status,me:e}),n(jl,{status:o.status}),n(Vl,{usage:o.usage}),n(Kl,{status:o.status})]}),
n(Qr,{})]})]})}function Wl({readiness:e}){let t=Object.entries(e.parts).filter(([,o])=>o!=="ok");return e.ready&&t.length===0?n(A,{look:"good",children:"ready"}):
n(g,{children:[n(A,{look:"bad",children:"not ready"}),t.map(([o,r])=>n("span",{class:"trouble",children:[" ",o,": ",r]},o))]})}function Hl({now:e,me:t}){let{status:o,
usage:r}=e,s=o.topics.reduce((c,d)=>c+d.dead,0),i=o.channels.filter(c=>!c.up).length,a=r.usage.reduce((c,d)=>c+d.microdollars,0),l=o.asks?.count??0;return n("ul",
{class:"tiles",children:[n(Ie,{figure:C(o.turns?.count??0),what:"running"}),n(Ie,{figure:C(o.waiting?.count??0),what:"waiting"}),n(Ie,{figure:C(l),what:qe(l,"op\
en request"),look:l?"warn":"",to:t.may.approve?X("approvals"):void 0}),n(Ie,{figure:C(s),what:qe(s,"dead letter"),look:s?"bad":"",to:t.may.admin?X("dead-letters"):
void 0}),n(Ie,{figure:i?`${i} of ${o.channels.length}`:C(o.channels.length),what:`${qe(o.channels.length,"channel")} ${i?"down":"up"}`,look:i?"bad":""}),n(Ie,{figure:te(
a),what:"today",to:X("usage")})]})}function Ie({figure:e,what:t,look:o,to:r}){let s=n(g,{children:[n("strong",{class:o,children:e})," ",n("span",{children:t})]});
return n("li",{children:r?n("a",{href:r,children:s}):n("div",{children:s})})}function ql(e){return e.turn?e.calls.length===0?n(g,{children:"calling the model"}):
n(g,{children:["running ",e.calls.map((t,o)=>n("span",{children:[o>0&&", ",n("code",{children:t.tool||"a tool"})," for ",n(de,{at:t.since})]},t.call))]}):n(g,{children:"\
starting or finishing"})}function tt({of:e,id:t,item:o,empty:r}){return!e||e.count===0?n("p",{class:"none",children:r}):n(g,{children:[n("ul",{class:"items",children:e.
list.map(s=>n("li",{children:o(s)},t(s)))}),e.count>e.list.length&&n("p",{class:"none",children:["and ",C(e.count-e.list.length)," more"]})]})}function zl({status:e,
me:t}){return n(g,{children:[n(N,{title:"Running now",children:n(tt,{of:e.turns,id:o=>o.session,empty:"Nothing is running. You'll see a turn here while the agen\
t works on an answer.",item:o=>n(g,{children:[n(F,{of:o.session}),n("span",{class:"aside",children:[ql(o),"; ",n(de,{at:o.since})," so far",o.person&&n(g,{children:[
", ",n(S,{of:o.person})]})," ",t.may.admin&&n(K,{of:o.turn})]})]})})}),n(N,{title:"Waiting for a worker",children:n(tt,{of:e.waiting,id:o=>o.session,empty:"No m\
essages are waiting.",item:o=>n(g,{children:[n(F,{of:o.session}),n("span",{class:"aside",children:[D(o.messages,"message"),", the first one ",n(T,{at:o.since}),
o.next&&n(g,{children:["; next try ",n(T,{at:o.next})]})," ",t.may.admin&&n(K,{of:o.session})]})]})})}),n(N,{title:"Waiting for people",children:n(tt,{of:e.asks,
id:o=>o.id,empty:"No open requests.",item:o=>n(g,{children:[t.may.approve?n("a",{href:X("approvals",o.id),children:o.tool||o.kind}):n("strong",{children:o.tool||
o.kind}),n("span",{class:"aside",children:["for ",n(S,{of:o.person}),", asked ",n(T,{at:o.since}),"; expires ",n(T,{at:o.expires}),"; ",o.decides.join(" or "),"\
 can answer"]})]})})}),n(N,{title:"Jobs",children:n(tt,{of:e.jobs,id:o=>o.id,empty:"No background commands are running.",item:o=>n(g,{children:[n(F,{of:o.session}),
n("span",{class:"aside",children:[n("code",{children:o.tool})," for ",n(de,{at:o.since}),"; times out ",n(T,{at:o.deadline})]})]})})})]})}function jl({status:e}){
let t=e.topics.filter(o=>o.dead>0);return n(N,{title:"Channels",children:[e.channels.length===0&&n("p",{class:"none",children:"No channels are configured. Run p\
arley onboard to add one."}),n("ul",{class:"items",children:e.channels.map(o=>n("li",{children:[n("span",{children:[n("strong",{children:o.name})," ",o.up?n(A,{
look:"good",children:"up"}):n(A,{look:"bad",children:"down"}),o.since&&n("span",{class:"aside",children:[" for ",n(de,{at:o.since})]})]}),!o.up&&o.reason&&n("sp\
an",{class:"trouble",children:o.reason}),(o.platform||o.bot)&&n("span",{class:"aside",children:[o.platform,o.bot&&n(g,{children:[" as ",n(S,{of:o.bot})]})]}),o.
last_in&&n("span",{class:"aside",children:["last message from people ",n(T,{at:o.last_in})]}),o.last_out&&n("span",{class:"aside",children:["last message sent ",
n(T,{at:o.last_out})]})]},o.name))}),t.length>0&&n(g,{children:[n("h3",{children:"Dead letters"}),n("ul",{class:"items",children:t.map(o=>n("li",{children:n("sp\
an",{children:[n(S,{of:o.topic}),": ",D(o.dead,"dead letter")]})},o.topic))})]})]})}function Vl({usage:e}){let t=e.usage.reduce((r,s)=>r+s.calls,0),o=e.usage.reduce(
(r,s)=>r+s.unpriced,0);return n(N,{title:"Cost",children:[n("p",{class:"none",children:[t===0?"No model calls today (UTC).":`${D(t,"model call")} today (UTC).`,
o>0&&` The price of ${C(o)} is unknown.`]}),n(Ht,{caps:e.caps})]})}function Kl({status:e}){return n(N,{title:"Due next",children:n(tt,{of:e.schedules,id:t=>t.id,
empty:"Nothing is scheduled.",item:t=>n(g,{children:[n(T,{at:t.next}),n("span",{class:"aside",children:["for ",n(S,{of:t.person})," in ",n(F,{of:t.session})]})]})})})}var Yl={owner:"owner",admitted:"has access",asks:"wants access"};function ts(){let e=Q(),t=R(s=>k(["pairings"],{},s),"",10),o=async s=>{let i=await H(["pairings"],
{code:s});e.say(`${nt(i)} now has access.`),t.again()},r=oe(s=>({title:s.state==="asks"?"Refuse access?":"Revoke access?",confirm:s.state==="asks"?"Refuse":"Rev\
oke",text:n(g,{children:[nt(s)," (",n(S,{of:s.person}),") ",s.state==="asks"?"will need to ask for access again.":"can't talk to the agent anymore, unless someo\
ne gives them access again."]}),act:async()=>{await G(["pairings",s.person]),e.say(s.state==="asks"?`You refused ${nt(s)} access.`:`${nt(s)} no longer has acces\
s.`),t.again()}}));return n(O,{title:"People",done:e,about:"People who got access with a code, people who want it, and those whom the configuration names.",children:[
n(Gl,{admit:o,outcome:e}),n(V,{read:t,rows:s=>s.pairings,label:"People who have access or want it",id:s=>s.person,empty:'Nobody has access or wants it yet. Peop\
le who write to the agent on a channel with access = "pairing" get a code and show up here.',columns:[{title:"Person",cell:s=>n(g,{children:[s.name&&n(g,{children:[
n("strong",{children:n(S,{of:s.name})}),n("br",{})]}),n("span",{class:"aside",children:n(S,{of:s.person})})]})},{title:"State",cell:s=>n(A,{look:s.state==="asks"?
"warn":"good",children:Yl[s.state]??s.state})},{title:"Linked with",cell:s=>s.linked?.map(i=>n("div",{children:n(S,{of:i})},i))},{title:"Code",cell:s=>s.code&&n(
"code",{children:s.code})},{title:"Since",cell:s=>n(T,{at:s.at})},{title:"Actions",cell:s=>n(y,{look:"danger",onPress:()=>r.ask(s),label:(s.state==="asks"?"Refu\
se ":"Revoke ")+nt(s),children:s.state==="asks"?"Refuse…":"Revoke…"})}]}),n(Ql,{}),n(tc,{}),r.dialog]})}function nt(e){return v(e.name||e.person)}function Gl({
admit:e,outcome:t}){let[o,r]=p(""),s=async()=>{await e(o.trim()),r("")};return n("form",{class:"filters",onSubmit:i=>{i.preventDefault(),o.trim()&&s().catch(t.fail)},
children:[n("label",{children:["Code that the person got from the agent",n("input",{value:o,autocomplete:"off",spellcheck:!1,onInput:i=>r(i.currentTarget.value)})]}),
n(y,{look:"main",disabled:!o.trim(),onPress:s,onError:t.fail,children:"Give access"})]})}var Zl={owners:"owner",approvers:"approver",allow_from:"has access"};function Ql(){
let e=B(t=>k(["config"],{},t),"");return n(N,{title:"In the configuration",wide:!0,children:n(V,{read:e,rows:t=>t.settings.flatMap(ec),label:"People whom the co\
nfiguration names",id:t=>t.person+" "+t.role,empty:"The configuration names nobody.",columns:[{title:"Person",cell:t=>n(S,{of:t.person})},{title:"Role",cell:t=>n(
A,{look:"good",children:t.role})},{title:"From",cell:t=>n(S,{of:t.from})}]})})}function ec({key:e,value:t,from:o}){let[,r,s=""]=/^channels\.(.+)\.([a-z_]+)$/.exec(
e)??[],i=Zl[s];return r&&i&&Array.isArray(t)?t.map(a=>({person:`${r}:${String(a)}`,role:i,from:o})):[]}function tc(){let e=B(t=>k(["chats"],{},t),"");return n(N,
{title:"Chats",wide:!0,children:n(V,{read:e,rows:t=>t.chats,label:"Chats where people talked to the agent",id:t=>t.address+" "+t.session,empty:"Nobody has talke\
d to the agent yet.",columns:[{title:"Chat",cell:t=>n(g,{children:[t.name&&n(g,{children:[n("strong",{children:n(S,{of:t.name})}),n("br",{})]}),n("span",{class:"\
aside",children:n(S,{of:t.address})})]})},{title:"Kind",cell:t=>t.group?"group":"private"},{title:"Session",cell:t=>n(F,{of:t.session})},{title:"Since",cell:t=>n(
T,{at:t.since})},{title:"Messages",cell:t=>n(K,{of:t.address})}]})})}function ns(){let{value:e,error:t,again:o}=B(a=>k(["config"],{},a),"");if(t)return n(M,{error:t,again:o});let r=a=>oc(e?.settings.find(l=>l.key==="heartbeat."+a)?.
value),[s,i]=[r("every"),r("agent")];return s?n("p",{class:"aside heartbeat",children:["Heartbeat: every ",v(s),", ",n(S,{of:i})," goes through ",n(S,{of:r("fil\
e")})," and tells ",n(S,{of:r("to")}),". ",n(nc,{agent:i})]}):null}function nc({agent:e}){let t=R(r=>k(["sessions"],{agent:e,channel:"heartbeat",order:"desc",limit:5},
r),e,60,["turn_complete","turn_error"]),o=t.value?.sessions[0];return t.error?n(g,{children:"Couldn't load the last beat."}):t.value?o?n(g,{children:["Last beat\
: ",n(T,{at:o.updated}),", in ",n(F,{of:o.key})]}):n(g,{children:"No beat yet."}):n(g,{children:"Loading the last beat…"})}function oc(e){return Array.isArray(
e)?e.join(", "):typeof e=="string"?e:""}function Xn({of:e,done:t,close:o}){let[r,s]=p(""),[i,a]=p(""),[l,c]=p(e?.when??""),[d,u]=p(e?.time_zone??Intl.DateTimeFormat().resolvedOptions().timeZone),[h,f]=p(
e?.text??""),[m]=p(()=>crypto.randomUUID()),[b,w]=p(null),_=ce(),P=async()=>{w(null);let x={when:l.trim(),text:h.trim(),time_zone:d.trim()};e?await pt(["schedul\
es",e.id],rc(e,x)):await H(["schedules"],{...x,session:r.trim(),...i.trim()?{person:i.trim()}:{}},m),t()};return n(N,{title:e?"Edit schedule":"New schedule",wide:!0,
box:_,children:n("form",{class:"editor",onSubmit:x=>{x.preventDefault(),P().catch(w)},children:[!e&&n(sc,{session:r,person:i,setSession:s,setPerson:a}),n("label",
{children:["When",n("input",{value:l,required:!0,placeholder:"0 9 * * *",spellcheck:!1,onInput:x=>c(x.currentTarget.value)}),n("span",{class:"aside",children:"F\
or example: in 2h, every 1d, 2030-01-31 09:00, or a cron expression"})]}),n("label",{children:["Time zone",n("input",{value:d,spellcheck:!1,onInput:x=>u(x.currentTarget.
value)})]}),n("label",{class:"long",children:["Message to the agent",n("textarea",{rows:3,required:!0,maxLength:4e3,value:h,onInput:x=>f(x.currentTarget.value)})]}),
n(M,{error:b}),n("div",{class:"after",children:[n(y,{look:"main",disabled:!l.trim()||!h.trim()||!e&&!r.trim(),onPress:P,onError:w,children:"Save"}),n(y,{onPress:o,
children:"Close"})]})]})})}function rc(e,t){let o={};return t.when!==e.when&&(o.when=t.when),t.text!==e.text&&(o.text=t.text),t.time_zone!==e.time_zone&&(o.time_zone=
t.time_zone),o}function sc({session:e,person:t,setSession:o,setPerson:r}){let s=B(i=>k(["chats"],{},i),"");return n(g,{children:[n("label",{children:["Session",
n("input",{value:e,required:!0,list:"sessions-known",placeholder:"main:telegram:42",spellcheck:!1,onInput:i=>o(i.currentTarget.value)}),n("datalist",{id:"sessio\
ns-known",children:s.value?.chats.map(i=>n("option",{value:i.session,children:i.name??i.address},i.session))})]}),n("label",{children:["On behalf of",n("input",
{value:t,placeholder:"telegram:42",spellcheck:!1,onInput:i=>r(i.currentTarget.value)})]})]})}var ic={done:"good",failed:"bad",running:"warn"};function os({of:e,why:t,close:o}){let r=R(s=>k(["schedules",e.id],{limit:20},s),e.id,20,["turn_start","turn_com\
plete","turn_error"]);return n(Be,{title:"Runs",close:o,children:n(V,{read:r,rows:s=>s.runs,label:`Turns that the schedule ${e.id} started, newest first`,id:s=>s.
id,empty:"No runs yet.",columns:[{title:"Started",cell:s=>n(T,{at:s.begun})},{title:"Due",cell:s=>s.due?n(T,{at:s.due}):"started manually"},{title:"State",cell:s=>n(
g,{children:[n(A,{look:ic[s.state],children:s.state})," ",s.code]})},{title:"Turn",cell:s=>t?n(K,{of:s.id}):n("code",{children:s.turn})}]})})}function rs({me:e}){let t=Q(),[o,r]=p(null),s=R(c=>k(["schedules"],{limit:200},c),"",20,["turn_start","turn_complete"]),i=c=>{t.say(c),r(null),s.again()},a={pause:async c=>{
await pt(["schedules",c.id],{paused:!c.paused}),i(c.paused?"Schedule resumed.":"Schedule paused. It won't catch up on the runs that it misses.")},run:async c=>{
let{id:d}=await H(["schedules",c.id,"run"],{},crypto.randomUUID());i(`Running now as ${d}.`)}},l=oe(c=>({title:"Cancel this schedule?",confirm:"Cancel schedule",
text:n(g,{children:["The agent won't get “",v(c.text),"” anymore."]}),act:async()=>{await G(["schedules",c.id]),i("Schedule canceled.")}}));return n(O,{title:"\
Schedules",done:t,about:e.may.admin?"What the agent does later, once or regularly.":"What the agent does later for you, once or regularly. To change it, ask the\
 agent.",children:[e.may.admin&&o?.what!=="new"&&n("div",{class:"filters",children:n(y,{look:"main",onPress:()=>r({what:"new"}),children:"New schedule"})}),o?.what===
"new"&&n(Xn,{done:()=>i("Schedule created."),close:()=>r(null)}),e.may.admin&&n(ns,{}),n(L,{...s}),s.value&&n(ac,{schedules:s.value.schedules,mayChange:e.may.admin,
change:c=>r({what:"change",of:c}),runs:c=>r({what:"runs",of:c}),pause:a.pause,run:a.run,cancel:l.ask,fail:t.fail}),s.value?.next&&n("p",{class:"none after",children:"\
There are more schedules than these."}),o?.what==="change"&&n(Xn,{of:o.of,done:()=>i("Schedule saved."),close:()=>r(null)},o.of.id),o?.what==="runs"&&n(os,{of:o.
of,why:e.may.admin,close:()=>r(null)},o.of.id),l.dialog]})}function ac({schedules:e,mayChange:t,change:o,runs:r,pause:s,run:i,cancel:a,fail:l}){return n(z,{label:"\
Schedules, next due first",rows:e,id:c=>c.id,empty:"Nothing is scheduled. Ask the agent to do something later, such as every morning"+(t?", or create a schedule\
 here.":"."),columns:[{title:"Next",cell:c=>c.next?n(T,{at:c.next}):n(A,{look:"warn",children:c.paused?"paused":"finished"})},{title:"When",cell:c=>n(g,{children:[
n("code",{children:v(c.when)}),n("br",{}),n("span",{class:"aside",children:c.time_zone})]})},{title:"Message",cell:c=>n("span",{class:"saying",children:v(c.text)})},
{title:"For",cell:c=>n(g,{children:[n(S,{of:c.person}),n("br",{}),n(F,{of:c.session})]})},{title:"Actions",cell:c=>n("div",{class:"rowactions",children:[t&&n(y,
{onPress:()=>i(c),onError:l,label:`Run now: ${c.id}`,children:"Run now"}),t&&n(y,{onPress:()=>s(c),onError:l,label:`${c.paused?"Resume":"Pause"}: ${c.id}`,children:c.
paused?"Resume":"Pause"}),t&&n(y,{onPress:()=>o(c),label:`Edit: ${c.id}`,children:"Edit"}),n(y,{onPress:()=>r(c),label:`Runs: ${c.id}`,children:"Runs"}),t&&n(y,
{look:"danger",onPress:()=>a(c),label:`Cancel: ${c.id}`,children:"Cancel…"})]})}]})}var ss=500,lc=200,cc={debug:"Everything",info:"Info and above",warn:"Warnings and errors",error:"Errors"};function is(){let[e,t]=p("info"),[o,r]=p(!1),s=mc(e,o);
return n(O,{title:"Log",about:"What the server that answers here writes about its work, without what people or models said. With several servers, each has its o\
wn log.",children:[n("div",{class:"filters",children:[n("label",{children:["Level",n("select",{value:e,onChange:i=>t(i.currentTarget.value),children:Object.entries(
cc).map(([i,a])=>n("option",{value:i,children:a},i))})]}),n(y,{onPress:()=>r(!o),children:o?"Follow":"Pause"}),n("span",{role:"status",class:"aside",children:o?
"Paused.":s.live?"Following.":s.why?"":"Connecting…"})]}),n(M,{error:s.why&&new Error(s.why)}),n(z,{label:"Lines of the log, newest first",rows:s.lines,id:i=>String(
i.id),empty:"No lines of this level yet.",columns:[{title:"Time",cell:i=>n(ht,{at:i.at})},{title:"Level",cell:i=>n(dc,{of:i.level})},{title:"Message",cell:i=>n(
"span",{class:"name",children:v(i.message)})},{title:"Details",cell:i=>n(uc,{of:i.fields})}]})]})}function dc({of:e}){return n(A,{look:e==="ERROR"?"bad":e==="WA\
RN"?"warn":void 0,children:e.toLowerCase()})}function uc({of:e}){let t=typeof e.turn=="string"?e.turn:void 0,o=Object.entries(e).filter(([,r])=>r!=="").map(([r,
s])=>r+"="+(typeof s=="string"?s:JSON.stringify(s)));return n(g,{children:[n("span",{class:"name aside",children:v(o.join(" "))})," ",n(K,{of:t})]})}function mc(e,t){
let[o,r]=p([]),[s,i]=p({live:!1,why:""}),a=J([]);return E(()=>{if(t)return;let l=new AbortController,c=!1,d,u=()=>{d=void 0;let[m,b]=[a.current.reverse(),c];a.current=
[],c=!1,r(w=>(b?m:[...m,...w]).slice(0,ss))},f={event:(m,b)=>{m==="reset"?(c=!0,a.current=[]):m==="line"&&(a.current.push(b),a.current.length>ss&&a.current.shift()),
d??=setTimeout(u,lc)},state:(m,b="")=>i({live:m==="live",why:b})};return Pt(ee(["logs","events"],{level:e}),f,l.signal),()=>{l.abort(),clearTimeout(d),a.current=
[],i({live:!1,why:""})}},[e,t]),{lines:o,...s}}function as(e){return e.map(t=>t.map(pc).join(",")+`\r
`).join("")}function pc(e){if(typeof e=="number"||/^\d+(\.\d+)?$/.test(e))return String(e);let t=/^[=+\-@\t\r]/.test(e)?"'"+e:e;return/[",\r\n]/.test(t)?'"'+t.replaceAll(
'"','""')+'"':t}function ls(e,t){let o=URL.createObjectURL(new Blob([t],{type:"text/csv;charset=utf-8"})),r=document.createElement("a");r.href=o,r.download=e,r.
click(),setTimeout(()=>URL.revokeObjectURL(o),1e4)}var Dn={day:"Day",model:"Model",person:"Person",agent:"Agent",session:"Session"};function $n(){return ge(Date.now())}function cs(){return $n().slice(0,8)+"01"}function us(){
let[e,t]=p(cs),[o,r]=p($n),[s,i]=p("model"),a=e+" "+o,l=B(c=>k(["usage"],{by:"day",from:e,to:o},c),a);return n(O,{title:"Usage",about:"What models used and cost\
. Days are in UTC.",children:[n("form",{class:"filters",onSubmit:c=>c.preventDefault(),children:[n("label",{children:["From",n("input",{type:"date",value:e,max:o,
onChange:c=>t(c.currentTarget.value||cs())})]}),n("label",{children:["To",n("input",{type:"date",value:o,min:e,onChange:c=>r(c.currentTarget.value||$n())})]})]}),
n(L,{...l}),l.value&&n(g,{children:[n(N,{title:"What's left now",children:n(Ht,{caps:l.value.caps})}),n(N,{title:"By day",wide:!0,children:[n(fc,{days:l.value.usage,
from:e,to:o}),n(ms,{by:"day",sums:l.value.usage,span:a})]}),n(gc,{by:s,choose:i,from:e,to:o}),n("p",{class:"aside",children:["Prices as of ",l.value.prices,"."]})]})]})}
function fc({days:e,from:t,to:o}){let r=e.some(f=>f.microdollars>0),s=r?te:f=>C(f)+" tokens",i=ft(t,o),a=i.map(f=>e.find(m=>m.key===f)),l=a.map(f=>f?r?f.microdollars:
ds(f):0),c=Math.max(0,...l);if(c===0)return null;let d=f=>{let m=a[f];return m?`${r?te(m.microdollars)+", ":""}${D(m.calls,"call")}, ${C(ds(m))} tokens`:"nothin\
g"},u=l.indexOf(c),h=`${r?"Cost":"Tokens"} per day from ${t} to ${o}. Highest: ${i[u]}: ${d(u)}. The table below lists all days.`;return n("div",{class:"plot",children:n(
Bn,{label:h,times:i,series:[{name:"",look:"c-main",values:l}],says:s,tells:d})})}var ds=e=>e.input+e.output;function gc({by:e,choose:t,from:o,to:r}){let s=o+" "+
r,i=B(a=>k(["usage"],{by:e,from:o,to:r},a).then(l=>({by:e,sums:l.usage})),e+" "+s);return n(N,{title:"By "+e,wide:!0,children:[n("div",{class:"filters",children:n(
"label",{children:["Group by",n("select",{value:e,onChange:a=>t(a.currentTarget.value),children:Object.keys(Dn).filter(a=>a!=="day").map(a=>n("option",{value:a,
children:Dn[a].toLowerCase()},a))})]})}),n(L,{...i}),i.value&&i.value.by===e&&n(ms,{by:e,sums:i.value.sums,span:s})]})}function hc(e,t){return e.unpriced===e.calls&&
e.calls>0?"unknown":t(e.microdollars)+(e.unpriced+e.estimated>0?" *":"")}function ms({by:e,sums:t,span:o}){let r=Eo(t.map(c=>c.microdollars)),s=[{title:Dn[e],cell:c=>v(
c.key||"(erased)")},{title:"Calls",cell:c=>C(c.calls),number:!0},{title:"Input",cell:c=>C(c.input),number:!0},{title:"Cached",cell:c=>C(c.cached),number:!0},{title:"\
Output",cell:c=>C(c.output),number:!0},{title:"Reasoning",cell:c=>C(c.reasoning),number:!0},{title:"Cost",cell:c=>hc(c,r),number:!0}],i=t.reduce((c,d)=>c+d.unpriced,
0),a=t.reduce((c,d)=>c+d.estimated,0),l=()=>ls(`parley-usage-by-${e}-${o.replace(" ","-to-")}.csv`,bc(e,t));return n(g,{children:[n(z,{label:`Usage by ${e}; inp\
ut, cached, output and reasoning are tokens`,columns:s,rows:t,id:c=>c.key,empty:"No model calls in this period."}),i>0&&n("p",{class:"aside",children:["* The co\
st of ",D(i,"call")," is unknown. See docs/models.md to set prices."]}),a>0&&n("p",{class:"aside",children:["* The tokens of ",D(a,"call")," are estimates, beca\
use the provider didn't count them."]}),t.length>0&&n("div",{class:"after",children:n(y,{onPress:l,label:`Download CSV: usage by ${e}`,children:"Download CSV"})})]})}
function bc(e,t){return as([[e,"calls","input_tokens","cached_tokens","output_tokens","reasoning_tokens","dollars","calls_estimated","calls_unpriced"],...t.map(
r=>[r.key,r.calls,r.input,r.cached,r.output,r.reasoning,(r.microdollars/1e6).toFixed(6),r.estimated,r.unpriced])])}function ps({rest:e}){let t=e[0]??"";return n(O,{title:"Why",about:"What happened to a message: who let it in, what ran, what people were asked, and whether the\
 answer was sent. It never shows what anyone said.",children:[n(vc,{id:t},t),t&&n(wc,{id:t})]})}function vc({id:e}){let[t,o]=p(e),r=()=>Me("why",t.trim());return n(
"form",{class:"filters",onSubmit:s=>{s.preventDefault(),t.trim()&&r()},children:[n("label",{class:"long",children:["Message, session, chat or person",n("input",
{value:t,placeholder:"telegram:42",spellcheck:!1,onInput:s=>o(s.currentTarget.value)})]}),n(y,{look:"main",disabled:!t.trim(),onPress:r,children:"Show"})]})}function wc({
id:e}){let t=B(r=>k(["why",e],{},r).then(s=>({id:e,told:s})),e),o=t.value?.id===e?t.value.told:void 0;return n("div",{"aria-live":"polite",children:[n(L,{value:o,
error:t.error,again:t.again}),o&&o.about!=="message"&&o.messages.length>0&&n("p",{class:"aside",children:["Latest messages of the ",o.about," ",v(o.id),":"]}),o?.
messages.map(r=>n(_c,{of:r},r.message)),o&&o.messages.length===0&&n("p",{class:"none",children:["No messages found for ",v(o.id),"."]}),o?.hints&&o.hints.length>
0&&n("ul",{class:"hints",children:o.hints.map((r,s)=>n("li",{children:n(wt,{text:r})},s))})]})}var yc=new Set(["answered","done"]),kc=new Set(["running","waitin\
g","waiting_for_people","sending"]);function _c({of:e}){let t=yc.has(e.outcome)?"good":kc.has(e.outcome)?"warn":"bad",o="story-"+e.message;return n("article",{class:"\
story","aria-labelledby":o,children:[n("h2",{id:o,children:[n("span",{class:"name",children:v(e.message)})," ",n(A,{look:t,children:e.outcome.replaceAll("_"," ")})]}),
n("p",{class:"aside",children:[e.steps[0]?.at&&n(T,{at:e.steps[0].at}),e.session&&n(g,{children:[" in ",n(F,{of:e.session})]})]}),n("ol",{class:"steps",children:e.
steps.map((r,s)=>n("li",{children:[n("span",{class:"at",children:r.at&&n(ht,{at:r.at})})," ",n("span",{children:n(wt,{text:r.text})})]},s))}),n("p",{children:[n(
"strong",{children:n(wt,{text:e.says})})," ",e.outcome==="waiting_for_people"&&n("a",{href:X("approvals"),children:"See open requests"})]})]})}function fs(){return[{name:"chat",title:"Chat",group:"Conversations",may:e=>e.may.agent||e.may.own||e.may.read,show:Pr},{name:"approvals",title:"Approvals",group:"\
Conversations",may:e=>e.may.approve||e.may.agent,show:Br,beside:Yr},{name:"people",title:"People",group:"Conversations",may:e=>e.may.admin,show:ts},{name:"overv\
iew",title:"Overview",group:"Now",may:e=>e.may.read,show:es},{name:"dead-letters",title:"Dead letters",group:"Now",may:e=>e.may.admin,show:$r},{name:"schedules",
title:"Schedules",group:"Now",may:e=>e.may.admin||e.may.own,show:rs},{name:"jobs",title:"Jobs",group:"Now",may:e=>e.may.read,show:Ir},{name:"agents",title:"Agen\
ts",group:"Setup",may:e=>e.may.read,show:Ar},{name:"mcp",title:"MCP servers",group:"Setup",may:e=>e.may.admin,show:qr},{name:"configuration",title:"Configuratio\
n",group:"Setup",may:e=>e.may.admin,show:Dr},{name:"memory",title:"Memory",group:"Setup",may:e=>e.may.admin,show:jr},{name:"browsers",title:"Browsers",group:"Se\
tup",may:()=>!0,show:Lr},{name:"usage",title:"Usage",group:"Records",may:e=>e.may.read,show:us},{name:"audit",title:"Audit",group:"Records",may:e=>e.may.admin,show:Or},
{name:"why",title:"Why",group:"Records",may:e=>e.may.admin,show:ps},{name:"doctor",title:"Doctor",group:"Records",may:e=>e.may.admin,show:Rr},{name:"log",title:"\
Log",group:"Records",may:e=>e.may.admin,show:is}]}function gs(){let[e,t]=p({state:"asking"}),[o,r]=p(0);switch(E(()=>{po(()=>t(s=>s.state==="in"?{state:"out",error:new Error("You've been signed out. Sign in aga\
in.")}:s)),_o(ko()).then(s=>t(s?{state:"in",me:s}:{state:"out"}),s=>t({state:"out",error:s}))},[o]),E(()=>{let s=()=>{location.hash.startsWith("#code=")&&r(i=>i+
1)};return addEventListener("hashchange",s),()=>removeEventListener("hashchange",s)},[]),e.state){case"asking":return n("main",{class:"signin",children:n(se,{})});case"\
out":return n(xo,{error:e.error,onDone:s=>t({state:"in",me:s})},o);case"in":return n(Sc,{me:e.me,onSignOut:()=>t({state:"out"})})}}function Sc({me:e,onSignOut:t}){
let o=ho(),r=bo(),[s,i]=p(null),a=fs().filter(d=>d.may(e)),l=a.find(d=>d.name===o.view)??a[0],c=async()=>{await G(["sign-ins","current"]),t()};return E(()=>{document.
title=l?`${l.title} – Parley`:"Parley"},[l]),n("div",{class:"frame",children:[n("a",{class:"skip",href:"#content",onClick:d=>{d.preventDefault(),document.getElementById(
"content")?.focus()},children:"Skip to content"}),n("header",{class:"top",children:[n(vo,{menu:r}),n("strong",{class:"brand",children:"Parley"}),n("span",{class:"\
here","aria-hidden":"true",children:l?.title}),n("span",{class:"who",title:"You're signed in with this name",children:e.name}),n(y,{look:"quiet",onPress:c,onError:i,
children:"Sign out"})]}),n(M,{error:s}),n("div",{class:"below",children:[n(wo,{all:a,view:l,menu:r}),n("main",{id:"content",class:"content",tabIndex:-1,children:l?
n(Nn,{children:n(l.show,{me:e,rest:l.name===o.view?o.rest:[]})},l.name):n("p",{class:"empty",children:"Your token can't see anything here. It needs the agent, o\
wn or read scope."})})]})]})}var Nn=class extends ne{componentDidCatch(t){console.error(t),this.setState({error:t})}render(){return this.state.error?n(M,{error:this.
state.error,again:()=>this.setState({error:void 0})}):this.props.children}};var hs=document.getElementById("page");hs&&Qn(n(gs,{}),hs);
