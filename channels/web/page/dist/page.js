var R,qn,ws,be,Vt,lt,zn,st,jn,Yt,Kt,ys,Fe=Symbol.for("pv"),ct={},dt=[],ks=/^m(i|n|o|s|text|space)$/,Gt=Array.isArray,Vn=dt.slice,xe=Object.assign;function Se(e){
e&&e.parentNode&&e.remove()}function it(e,t,o,r,s){var i={type:e,props:t,key:o,ref:r,__k:null,__:null,__b:0,__e:null,__c:null,constructor:Fe,__v:s||++qn,__i:-1,__u:0};return!s&&R.vnode&&R.
vnode(i),i}function g(e){return e.children}function ne(e,t){this.props=e,this.context=t,this.__g=0}function ve(e,t){if(t==null)return e.__&&ve(e.__,e.__i+1);for(var o;t<e.
__k.length;t++)if((o=e.__k[t])&&o.__e)return o.__e;return typeof e.type!="function"||e.props.__P?null:ve(e)}function _s(e){var t,o=e.__v,r=o.__e,s=[],i=[],a=e.__P;
a&&((t=xe({constructor:Fe},o)).__v=o.__v+1,R.vnode&&R.vnode(t),Zt(a,t,o,e.__n,a.namespaceURI,32&o.__u?[r]:null,s,r||ve(o),32&o.__u,i),t.__v=o.__v,t.__.__k[t.__i]=
t,eo(s,t,i),o.__=o.__e=null,t.__e!=r&&Kn(t))}function Kn(e){if((e=e.__)&&e.__c&&!e.props.__P)return e.__e=null,e.__k.some(function(t){return t&&(e.__e=t.__e)}),
Kn(e)}function Wn(e){(8&e.__g||(e.__g|=8,be.push(e),lt++))&&Vt==R.debounceRendering||((Vt=R.debounceRendering)||queueMicrotask)(Yn)}function Yn(){try{for(var e,
t=1;be.length;)be.length>t&&be.sort(zn),e=be.shift(),t=be.length,8&e.__g&&_s(e)}finally{(lt=be.length)&&(Vt||queueMicrotask)(Yn)}}function Gn(e,t,o,r,s,i,a,l,c,d,u){
var v,p,m,b,w,_,P=r.__k||dt,x=t.length;for(c=Ss(o,t,P,c,x),v=0;v<x;v++)(m=o.__k[v])!=null&&(p=~m.__i&&P[m.__i]||ct,m.__i=v,_=Zt(e,m,p,s,i,a,l,c,d,u),b=m.__e,(p.
ref!=m.ref||8&p.__u)&&(p.ref&&Qt(p.ref,null,m,p),m.ref&&u.push(m.ref,m.__c||b,m)),w=w||b,4&m.__u?(c=Zn(m,c,e,!p.__v),p.__e&&(p.__e=null)):typeof m.type=="functi\
on"&&_!==void 0?c=_:b&&(c=b.nextSibling),m.__u&=-21);return o.__e=w,c}function Ss(e,t,o,r,s){var i,a,l,c,d,u,v,p,m,b=o.length,w=b,_=0,P=0,x=e.__k=Array(s);for(i=
0;i<s;i++)(a=t[i])!=null&&typeof a!="boolean"&&typeof a!="function"?(typeof a!="object"||a.constructor===String?a=x[i]=it(null,a):Gt(a)?a=x[i]=it(g,{children:a}):
a.constructor===Fe&&a.__b?a=x[i]=it(a.type,a.props,a.key,a.ref,a.__v):x[i]=a,c=i+_,a.__=e,a.__b=e.__b+1,l=null,~(d=a.__i=xs(a,o,c,w))&&(w--,(l=o[d])&&(l.__u|=2)),
l&&l.__v?(a.__u|=16,d==c-1?_--:d==c+1?_++:d!=c&&(d>c?_--:_++,P=1)):(~d||(s>b?_--:s<b&&_++),typeof a.type!="function"&&(a.__u|=4))):x[i]=null;if(P){for(u=[],v=[],
i=0;i<s;i++)if((a=x[i])&&16&a.__u){for(_=0,p=u.length;_<p;)u[m=_+p>>1]<a.__i?_=m+1:p=m;u[_]=a.__i,v[i]=_+1}for(_=u.length;i--;)v[i]&&(v[i]==_?_--:x[i].__u|=4)}if(w)
for(i=0;i<b;i++)!(l=o[i])||2&l.__u||(l.__e==r&&(r=ve(l)),en(l,l));return r}function Zn(e,t,o,r){var s,i,a,l;if(typeof e.type=="function"){if(e.props.__P)return t;
if(s=e.__k)for(i=0;i<s.length;i++)s[i]&&(s[i].__=e,t=Zn(s[i],t,o,!1));return t}for(t&&!t.parentNode&&(t=ve(e))&&!t.parentNode&&(t=null),a=e.__e,l=t;l&&l.nodeType==
8;)l=l.nextSibling;for(a!=l&&(!r&&o.moveBefore&&a.parentNode?o.moveBefore(a,t):o.insertBefore(a,t||null)),t=a;(t=t&&t.nextSibling)&&t.nodeType==8&&!t.data.startsWith(
"$s"););return t}function xs(e,t,o,r){var s,i=e.key,a=e.type,l=t[o],c=l&&!(2&l.__u);if(l===null&&i==null||c&&i==l.key&&a==l.type)return o;if(r>(c?1:0)){for(s=o-1;s>=0;s--)if((l=
t[s])&&!(2&l.__u)&&i==l.key&&a==l.type)return s;for(s=o+1;s<t.length;s++)if((l=t[s])&&!(2&l.__u)&&i==l.key&&a==l.type)return s}return-1}function Hn(e,t,o){o==null&&
(o=""),t[0]=="-"?e.setProperty(t,o):e[t]=o}function rt(e,t,o,r,s){var i,a;if(t=="style")if(typeof o=="string")e.style.cssText=o;else{if(typeof r=="string"&&(e.style.
cssText=r=""),r)for(t in r)o&&t in o||Hn(e.style,t);if(o)for(t in o)r&&o[t]==r[t]||Hn(e.style,t,o[t])}else if(t[0]=="o"&&t[1]=="n")typeof o!="function"&&(o=null),
typeof r!="function"&&(r=null),(e.__e||(e.__e={}))[t]=o,o&&r||(a=Kt[t]||(Kt[t]=Ts(t)),(e.__a||(e.__a={}))[t]=Yt,i=t!=(t=t.replace(jn,"$1")),(t=t.slice(2))[0]<"a"&&
(t=t.toLowerCase()),o?e.addEventListener(t,a,i):e.removeEventListener(t,a,i));else{if(s=="http://www.w3.org/2000/svg")t=t.replace(/xlink(H|:h)/,"h").replace(/sName$/,
"s");else if(t!="width"&&t!="height"&&t!="href"&&t!="list"&&t!="form"&&t!="tabIndex"&&t!="download"&&t!="rowSpan"&&t!="colSpan"&&t!="role"&&t!="popover"&&t in e)
try{return void(e[t]=o??"")}catch{}if(typeof o=="function")return;o==null||o===!1&&t[4]!="-"?e.removeAttribute(t):e.setAttribute(t,t=="popover"&&o==1?"":o)}}function Ts(e){
return function(t){var o=this.__e;if(o){if(o=o[e],t[st]==null)t[st]=Yt++;else if(t[st]<this.__a[e])return;return o(R.event?R.event(t):t)}}}function Zt(e,t,o,r,s,i,a,l,c,d){
var u,v,p,m,b,w,_,P,x,U,I,Ce,Fn,ot,ke,Un,he,_e,me=t.type;if(t.constructor!==Fe)return null;128&o.__u&&(c=32&o.__u,u=o.__c.__z)&&(t.__u|=c,v=i=[],u.nodeType==8?l=
at(u,i):i.push(u),l=i[0]||l),(u=R.__b)&&u(t);e:if(typeof me=="function"){p=a.length;try{if(P=t.props,x=(u=me.prototype)&&u.render,U=(u=me.contextType)&&r[u.__c],
I=u?U?U.props.value:u.__:r,(m=o.__c)?(t.__c=m,2&m.__g&&(m.__g|=1)):(x?t.__c=m=new me(P,I):(t.__c=m=new ne(P,I),m.constructor=me,m.render=Ps),U&&U.sub(m),m.state||
(m.state={}),m.__n=r,m.__g|=8,m.__h=[],m.__k=[]),x&&(m.__s||(m.__s=m.state),me.getDerivedStateFromProps&&(m.__s==m.state&&(m.__s=xe({},m.__s)),xe(m.__s,me.getDerivedStateFromProps(
P,m.__s)))),b=m.props,w=m.state,m.__v=t,o.__c){if(P!==b&&x&&!me.getDerivedStateFromProps&&m.componentWillReceiveProps&&m.componentWillReceiveProps(P,I),t.__v==o.
__v&&!(8&m.__g)||!(4&m.__g)&&m.shouldComponentUpdate&&m.shouldComponentUpdate(P,m.__s,I)===!1){t.__v!=o.__v&&(m.props=P,m.state=m.__s,m.__g&=-9),t.__e=o.__e,t.__k=
o.__k,t.__k.some(function(ie){ie&&(ie.__=t)}),dt.push.apply(m.__h,m.__k),m.__k=[],m.__h.length&&a.push(m),l=ve(o);break e}m.componentWillUpdate&&m.componentWillUpdate(
P,m.__s,I),x&&m.componentDidUpdate&&m.__h.push(function(){m.componentDidUpdate(b,w,_)})}else x&&!me.getDerivedStateFromProps&&m.componentWillMount&&m.componentWillMount(),
x&&m.componentDidMount&&m.__h.push(m.componentDidMount);m.context=I,m.props=P,m.__P=e,m.__g&=-5,Ce=R.__r,Fn=x?25:0;do m.__g&=-9,Ce&&Ce(t),u=m.render(m.props,m.state=
m.__s,m.context);while(8&m.__g&&++Fn<25);x&&(dt.push.apply(m.__h,m.__k),m.__k=[]),m.state=m.__s,m.getChildContext&&(r=xe({},r,m.getChildContext())),x&&o.__c&&m.
getSnapshotBeforeUpdate&&(_=m.getSnapshotBeforeUpdate(b,w)),ot=u&&u.type===g&&u.key==null?u.props.children:u,P.__P&&(u=l,s=(e=P.__P).namespaceURI,c=i=null,o.props&&
o.props.__P!=e&&(o.__k.some(function(ie){ie&&en(ie,ie)}),o.__k=null),l=o.__k?ve(o,0):null),l=Gn(e,Gt(ot)?ot:[ot],t,o,r,s,i,a,l,c,d),P.__P&&(t.__e=null,l=u),t.__u&=
-161,v&&v.some(Se),m.__h.length&&a.push(m),1&m.__g&&(m.__g&=-4)}catch(ie){if(a.length=p,t.__v=null,c||i)if(ie&&ie.then){if(t.__u|=128|c,i){for(~(he=i.indexOf(l||
void 0))||(he=i.length);(_e=i[he-1])&&_e.nodeType==8;)he--;for(;he<i.length;he++)if(_e=i[he])if(i[he]=null,ke){if(_e==Un)break}else{if(_e.nodeType!=8)break;_e.data.
startsWith("$s")&&(Un=at(ke=_e))}}if(!ke){for(;l&&l.nodeType==8&&l.nextSibling;)l=l.nextSibling;ke=l}(u=at(ke=t.__c.__z||(t.__c.__z=ke)))?(t.__e=ke,l=u):t.__e=l,
l=l&&l.nextSibling}else i&&i.some(Se);else t.__e=o.__e;t.__k||(t.__k=o.__k||[]),ie&&ie.then||Qn(t),R.__e(ie,t,o)}}else l=t.__e=Es(o.__e,t,o,r,s,i,a,c,d,e);return(u=
R.diffed)&&u(t),l}function at(e,t){if(e&&e.nodeType==8&&e.data.startsWith("$s"))for(var o=1;e=e.nextSibling;){if(e.nodeType==8){if(e.data.startsWith("$s"))o++;else if(e.
data.startsWith("/$s")&&!--o)return e}t&&t.push(e)}}function Qn(e){e&&(e.__c&&(e.__c.__g|=4),e.__k&&e.__k.some(Qn))}function eo(e,t,o){for(var r=0;r<o.length;)Qt(
o[r++],o[r++],o[r++]);R.__c&&R.__c(t,e),e.some(function(s){try{e=s.__h,s.__h=[],e.some(function(i){i.call(s)})}catch(i){R.__e(i,s.__v)}})}function Es(e,t,o,r,s,i,a,l,c,d){
var u,v,p,m,b,w,_,P,x=o.props||ct,U=t.props,I=t.type;if(I=="svg"?s="http://www.w3.org/2000/svg":I=="math"?s="http://www.w3.org/1998/Math/MathML":s||(s="http://w\
ww.w3.org/1999/xhtml"),i){for(u=0;u<i.length;u++)if((b=i[u])&&(I?b.localName==I:b.nodeType==3)){e=b,i[u]=null;break}}if(!e){if(P=d.ownerDocument||document,!I)return P.
createTextNode(U);e=P.createElementNS(s,I,U.is?U:d),l&&(R.__m&&R.__m(t,i),l=!1),i=null}if(I){if(d=I=="template"&&e.content||e,i=I=="textarea"&&U.defaultValue!=null?
null:i&&Vn.call(d.childNodes),!l&&i)for(x={},u=0;u<e.attributes.length;u++)x[(b=e.attributes[u]).name]=b.value;for(u in x)b=x[u],u=="dangerouslySetInnerHTML"?p=
b:u=="children"||u in U||u=="value"&&"defaultValue"in U||u=="checked"&&"defaultChecked"in U||rt(e,u,null,b,s);for(u in U)b=U[u],u=="children"?m=b:u=="dangerousl\
ySetInnerHTML"?v=b:u=="value"?w=b:u=="checked"?_=b:l&&typeof b!="function"||x[u]===b||rt(e,u,b,x[u],s);v?(l||p&&(v.__html==p.__html||v.__html==e.innerHTML)||(e.
innerHTML=v.__html),t.__k=[]):(p&&(e.textContent=""),(I=="foreignObject"||s=="http://www.w3.org/1998/Math/MathML"&&ks.test(I))&&(s="http://www.w3.org/1999/xhtml"),
Gn(d,Gt(m)?m:[m],t,o,r,s,i,a,i?i[0]:o.__k&&ve(o,0),l,c),i&&i.some(Se)),l&&I!="textarea"||(u="value",I=="progress"&&w==null?e.removeAttribute(u):w==null||w===e[u]&&
(I!="progress"||w)||rt(e,u,w,x[u],s),u="checked",_!=null&&_!=e[u]&&rt(e,u,_,x[u],s))}else x===U||l&&e.data==U||(e.data=U);return e}function Qt(e,t,o,r){try{typeof e==
"function"?t?t.__x=e(t)||1:r&&(r=r.__c||r.__e)&&(t=r.__x)&&(r.__x=null,typeof t=="function"?t():e(null)):e.current=t}catch(s){R.__e(s,o)}}function en(e,t,o){var r,
s,i,a;if(R.unmount&&R.unmount(e),!(r=e.ref)||r.current&&r.current!=e.__e||Qt(r,null,t,e),r=e.__c){if(r.componentWillUnmount)try{r.componentWillUnmount()}catch(l){
R.__e(l,t)}r.__P=r.__n=null}if(r=e.__k)for(a=0;a<r.length;a++)r[a]&&en(r[a],t,typeof e.type!="function"||o&&!e.props.__P);!o&&(r=e.__c)&&(r=r.__z)&&(s=at(r,i=[]))&&
(r==e.__e&&i.some(Se),Se(s),Se(r)),o||Se(e.__e),e.__e=e.__c=e.__=null}function Ps(e,t,o){return this.constructor(e,o)}function to(e,t){var o,r,s,i;R.__&&R.__(e,
t),t.nodeType==9&&(t=t.documentElement),r=(o=e&&32&e.__u)?null:t.__k,t.__k=it(g,{children:[e]}),s=[],i=[],Zt(t,t.__k,r||ct,ct,t.namespaceURI,r?null:t.firstChild?
Vn.call(t.childNodes):null,s,r?r.__e:t.firstChild,o,i),eo(s,t.__k,i),t.__k.props.children=null}R={__e:function(e,t,o,r){for(var s,i,a;t=t.__;)if((s=t.__c)&&!(1&s.__g)){s.__g|=4;try{if((a=(i=s.constructor)&&i.getDerivedStateFromError)&&s.setState(i.getDerivedStateFromError(
e)),s.componentDidCatch&&(s.componentDidCatch(e,r||{}),a=1),a&&8&s.__g)return void(s.__g|=2)}catch(l){e=l}}throw lt=0,e}},qn=0,ws=function(e){return e!=null&&e.
constructor===Fe},ne.prototype.setState=function(e,t){var o=this.__s;o&&o!=this.state||(o=this.__s=xe({},this.state)),typeof e=="function"&&(e=e(xe({},o),this.props)),
e&&(xe(o,e),this.__v&&(t&&this.__k.push(t),Wn(this)))},ne.prototype.forceUpdate=function(e){this.__v&&(this.__g|=4,e&&this.__h.push(e),Wn(this))},ne.prototype.render=
g,be=[],lt=0,zn=function(e,t){return e.__v.__b-t.__v.__b},st=Symbol(),jn=/(PointerCapture)$|Capture$/i,Yt=0,Kt={},ys=0;var Ae,q,tn,no,nn=Object.is,ut=0,mo=[],on=[],W=R,oo=W.__b,ro=W.__r,so=W.diffed,io=W.__c,ao=W.unmount,lo=W.__;function mt(e,t){W.__h&&W.__h(q,e,ut||t),ut=0;var o=q.
__H||(q.__H={__:[],__h:[]});return e>=o.__.length&&o.__.push({}),o.__[e]}function f(e){return ut=1,Cs(po,e)}function Cs(e,t,o){var r=mt(Ae++,2);if(r.t=e,!r.__c&&
(r.__=[o?o(t):po(void 0,t),function(i){var a=(r.__N||r.__)[0],l=r.t(a,i);nn(a,l)||(r.__N=[l,r.__[1]],r.__c.setState({}))}],r.__c=q,!q.__f)){q.__f=!0;var s=q.shouldComponentUpdate;
q.shouldComponentUpdate=function(i,a,l){var c=this.__H;if(!c)return!0;var d=!1,u=this.props!=i;if(c.__.some(function(p){p.__N&&(d=!0,nn(p.__[0],p.__N[0])||(u=!0))}),
s){var v=s.call(this,i,a,l);return d?v||u:v}return!d||u}}return r.__}function E(e,t){var o=mt(Ae++,3);!W.__s&&sn(o.__H,t)&&(o.__P=!0,o.__=e,o.u=t,q.__H.__h.push(
o))}function pe(e,t){var o=mt(Ae++,4);!W.__s&&sn(o.__H,t)&&(o.__P=!1,o.__=e,o.u=t,q.__h.push(o))}function A(e){return ut=5,As(function(){return{current:e}},[])}function As(e,t){var o=mt(Ae++,7);return sn(o.__H,t)&&(o.__=e(),o.__H=t),o.__}function Js(){var e;do{for(;e=on.shift();)try{Ue(e)}catch(o){W.__e(o,{__:(e=e.__P)&&e.__v})}for(;e=mo.shift();){var t=e.__H;if(e.__P&&t)try{t.__h.some(Ue),t.__h.
some(rn),t.__h=[]}catch(o){t.__h=[],W.__e(o,e.__v)}}}while(on.length)}W.__b=function(e){q=null,oo&&oo(e)},W.__=function(e,t){e&&t.__k&&t.__k.__m&&(e.__m=t.__k.__m),
lo&&lo(e,t)},W.__r=function(e){ro&&ro(e),Ae=0;var t=(q=e.__c).__H;t&&(tn==q?q.__h=[]:(t.__h.some(Ue),t.__h.some(rn),Ae=0),t.__h=[],t.__.some(function(o){o.__N&&
(o.__=o.__N),o.u=o.__N=void 0})),tn=q},W.diffed=function(e){so&&so(e);var t=e.__c;t&&t.__H&&(t.__H.__h.length&&uo(mo.push(t)),t.__H.__.some(function(o){o.u&&(o.
__H=o.u)})),tn=q=null},W.__c=function(e,t){t.some(function(o){try{o.__h.some(Ue),o.__h=o.__h.filter(function(r){return!r.__||rn(r)})}catch(r){o.__h=[function(){
throw r}]}}),io&&io(e,t)},W.unmount=function(e){ao&&ao(e);var t,o,r=e.__c;r&&r.__H&&(r.__H.__.some(function(s){try{if(s.__P&&s.__c){if(o===void 0){for(o=e.__;o&&
(!o.__c||!o.__c.__P);)o=o.__;o=o&&o.__c}s.__P=o,uo(on.push(s))}else Ue(s)}catch(i){t=i}}),r.__H=void 0,t&&W.__e(t,r.__v))};var co=typeof requestAnimationFrame==
"function";function Ms(e){var t,o=function(){clearTimeout(r),co&&cancelAnimationFrame(t),setTimeout(e)},r=setTimeout(o,35);co&&(t=requestAnimationFrame(o))}function uo(e){
e!=1&&no==W.requestAnimationFrame||((no=W.requestAnimationFrame)||Ms)(Js)}function Ue(e){var t=q,o=e.__c;typeof o=="function"&&(e.__c=void 0,o()),q=t}function rn(e){
var t=q;e.__c=e.__(),q=t}function sn(e,t){return!e||e.length!=t.length||t.some(function(o,r){return!nn(o,e[r])})}function po(e,t){return typeof t=="function"?t(
e):t}var Y=class extends Error{constructor(o,r,s,i=0){super(s);this.status=o;this.code=r;this.retryAfter=i}status;code;retryAfter},fo=()=>{};function go(e){fo=e}function ee(e,t={}){
let o=new URLSearchParams;for(let[s,i]of Object.entries(t))i!==void 0&&i!==""&&o.set(s,String(i));let r="/v1/"+e.map(encodeURIComponent).join("/");return o.size>
0?r+"?"+o.toString():r}function k(e,t={},o){return We("GET",ee(e,t),void 0,{},o)}function H(e,t={},o){return We("POST",ee(e),t,o?{"Idempotency-Key":o}:{})}function pt(e,t){
return We("PATCH",ee(e),t)}function G(e,t){return We("DELETE",ee(e),void 0,t?{"If-Match":`"${t}"`}:{})}function ho(e,t,o){return We("PUT",ee(e),t,{"If-Match":`"${o}\
"`})}async function We(e,t,o,r={},s){let i={...r};e!=="GET"&&(i["Parley-Page"]="1"),o!==void 0&&(i["Content-Type"]="application/json");let a={method:e,headers:i,
credentials:"same-origin",redirect:"error"};o!==void 0&&(a.body=JSON.stringify(o)),s&&(a.signal=s);let l=await He(t,a);if(!l.ok)throw await Te(l);let c=await l.
text();return c?JSON.parse(c):void 0}async function He(e,t){try{return await fetch(e,{cache:"no-store",...t})}catch(o){throw t.signal?.aborted?o:new Y(0,"unreac\
hable","Can't reach the server. Check that parley serve is running.")}}async function Te(e){let t="http_"+e.status,o=`The server responded with status ${e.status}\
.`;try{let r=await e.json();t=r.error?.code||t,o=r.error?.message||o}catch{}return e.status===401&&fo(),new Y(e.status,t,o,Number(e.headers.get("Retry-After"))||
0)}function Je(e){let t=e instanceof Error?e.message:String(e);return t.charAt(0).toUpperCase()+t.slice(1)}function bo(e){let[t="",...o]=e.replace(/^#?\/?/,"").split("/");try{return{view:decodeURIComponent(t),rest:o.map(decodeURIComponent)}}catch{return{view:"",rest:[]}}}
function X(e,...t){return"#/"+[e,...t].map(encodeURIComponent).join("/")}function Me(e,...t){location.hash=X(e,...t)}function vo(){let[e,t]=f(()=>bo(location.hash));
return pe(()=>{let o=()=>t(bo(location.hash));return addEventListener("hashchange",o),()=>removeEventListener("hashchange",o)},[]),e}var Os=Symbol.for("pv"),Bs=0;function n(e,t,o,r,s,i){t||(t={});var a,l,c=t;if("ref"in c&&typeof e!="function")for(l in c={},t)l=="ref"?a=t[l]:c[l]=t[l];var d={type:e,props:c,key:o,ref:a,__k:null,
__:null,__b:0,__e:null,__c:null,constructor:Os,__v:--Bs,__i:-1,__u:0};return(s||i)&&(d.__source=s,d.__self=i),R.vnode&&R.vnode(d),d}function wo(){let[e,t]=f(!1),[o,r]=f(0),s=()=>t(!1);return E(()=>{if(!e)return;let i=l=>{l.target instanceof Element&&!l.target.closest("#views, .top")&&s()},a=l=>{
l.key==="Escape"&&(s(),document.querySelector(".menu-button")?.focus())};return addEventListener("pointerdown",i),addEventListener("focusin",i),addEventListener(
"keydown",a),()=>{removeEventListener("pointerdown",i),removeEventListener("focusin",i),removeEventListener("keydown",a)}},[e]),{open:e,waiting:o,toggle:()=>t(!e),
close:s,tell:r}}function yo({menu:e}){return n("button",{type:"button",class:"button quiet menu-button","aria-expanded":e.open,"aria-controls":"views",onClick:e.
toggle,children:[n("svg",{class:"icon",viewBox:"0 0 24 24","aria-hidden":"true",focusable:"false",children:n("path",{d:"M4 6h16M4 12h16M4 18h16"})}),"Menu",e.waiting>
0&&!e.open&&n("span",{class:"badge warn",children:[e.waiting,n("span",{class:"away",children:" open requests"})]})]})}function Ls(e){let t=new Map;for(let o of e)
t.set(o.group,[...t.get(o.group)??[],o]);return[...t]}function ko({all:e,view:t,menu:o}){let r=A(null);E(()=>{r.current?.querySelector("[aria-current]")?.scrollIntoView(
{block:"nearest"})},[t]);let s=()=>{o.open&&(o.close(),document.getElementById("content")?.focus())};return n("nav",{ref:r,id:"views",class:"views"+(o.open?" op\
en":""),"aria-label":"Views",children:Ls(e).map(([i,a])=>{let l="views-"+i.toLowerCase();return n("div",{class:"views-group",children:[n("span",{id:l,class:"vie\
ws-title",children:i}),n("ul",{"aria-labelledby":l,children:a.map(c=>n("li",{children:n("a",{href:X(c.name),"aria-current":c===t?"page":void 0,onClick:s,children:[
c.title,c.beside&&n(c.beside,{tell:o.tell})]})},c.name))})]},i)})})}function y({children:e,onPress:t,look:o,disabled:r,label:s,onError:i}){let[a,l]=f(!1),c=async()=>{try{let d=t();if(!(d instanceof Promise))return;l(!0),await d}catch(d){
if(!i)throw d;i(d)}finally{l(!1)}};return n("button",{type:"button",class:"button "+(o??""),disabled:r||a,"aria-label":s,"aria-busy":a,onClick:()=>{c()},children:e})}
function M({error:e,again:t}){return e?n("div",{class:"note error",role:"alert",children:[n("span",{children:Je(e)}),t&&n(y,{look:"quiet",onPress:t,children:"Tr\
y again"})]}):null}function re({children:e}){return n("p",{class:"empty",children:e})}function se(){return n("p",{class:"empty",role:"status",children:"Loading…"})}
function z({label:e,columns:t,rows:o,id:r,empty:s}){return o.length===0?n(re,{children:s}):n("div",{class:"table",tabIndex:0,role:"region","aria-label":e,children:n(
"table",{children:[n("caption",{class:"away",children:e}),n("thead",{children:n("tr",{children:t.map(i=>n("th",{scope:"col",class:i.number?"number":"",children:i.
title},i.title))})}),n("tbody",{children:o.map(i=>n("tr",{children:t.map(a=>n("td",{class:a.number?"number":"","data-title":a.title,children:a.cell(i)},a.title))},
r(i)))})]})})}function K({of:e}){return e?n("a",{href:X("why",e),"aria-label":"Why? "+e,children:"Why?"}):null}function _o({label:e,children:t}){let o=A(null),r=()=>{
o.current&&(o.current.open=!1)};return E(()=>{let s=i=>{i.target instanceof Node&&!o.current?.contains(i.target)&&r()};return addEventListener("pointerdown",s),
()=>removeEventListener("pointerdown",s)},[]),n("details",{ref:o,class:"menu",onKeyDown:s=>{s.key!=="Escape"||!o.current?.open||(r(),o.current.querySelector("su\
mmary")?.focus())},children:[n("summary",{class:"button quiet","aria-label":e,title:e,children:"⋯"}),n("div",{class:"menu-items",onClick:r,children:t})]})}function fe({
title:e,children:t,confirm:o,danger:r,onConfirm:s,onClose:i}){let a=A(null),l=A(!1),[c,d]=f(null);return pe(()=>{let v=a.current;return v?.showModal(),()=>{l.current=
!0,v?.close()}},[]),n("dialog",{ref:a,class:"dialog","aria-labelledby":"dialog-title",onClose:()=>l.current||i(),children:[n("h2",{id:"dialog-title",children:e}),
n("div",{children:t}),n(M,{error:c}),n("div",{class:"actions",children:[n(y,{onPress:i,children:"Cancel"}),n(y,{look:r?"danger":"main",onPress:async()=>{await s(),
i()},onError:d,children:o})]})]})}function ce(){let e=A(null);return pe(()=>{let t=document.activeElement;return e.current?.scrollIntoView({block:"start"}),e.current?.
focus({preventScroll:!0}),()=>{t instanceof HTMLElement&&e.current?.contains(document.activeElement)&&t.focus()}},[]),e}function O(e,t){let[o,r]=f({}),[s,i]=f(0);
return E(()=>{let a=new AbortController;return e(a.signal).then(l=>a.signal.aborted||r({value:l}),l=>a.signal.aborted||r(c=>({...c,error:l}))),()=>a.abort()},[t,
s]),{...o,again:()=>i(a=>a+1)}}function So(){let e=/^#code=([^&]+)$/.exec(location.hash);return e?.[1]?(history.replaceState(null,"",location.pathname),decodeURIComponent(e[1])):""}async function xo(e){
if(e)return To({code:e});try{return await k(["me"])}catch(t){if(t instanceof Y&&(t.status===401||t.status===404))return null;throw t}}function To(e){return H(["\
sign-ins"],e)}function Xs(e){let t=/(?:#code=|^)([A-Z2-7]{26})$/.exec(e)?.[1];return t?{code:t}:{token:e}}function Eo({error:e,onDone:t}){let[o,r]=f(""),[s,i]=f(
e),a=async()=>{let l=o.trim();l&&(i(null),t(await To(Xs(l))))};return n("main",{class:"signin",children:[n("h1",{children:"Parley"}),n("p",{children:["Run ",n("\
code",{children:"parley ui"})," on the server. It opens this page and signs you in."]}),n(M,{error:s}),n("form",{onSubmit:l=>{l.preventDefault(),a().catch(i)},children:[
n("label",{for:"given",children:"Or paste the link that it prints, or a token"}),n("input",{id:"given",type:"password",autocomplete:"off",value:o,onInput:l=>r(l.
currentTarget.value)}),n(y,{look:"main",disabled:!o.trim(),onPress:a,onError:i,children:"Sign in"})]})]})}var Po="en-US";function C(e){return e.toLocaleString(Po)}function D(e,t){return C(e)+" "+qe(e,t)}function qe(e,t){return e===1?t:t+"s"}function te(e){return e===
0?"$0":Math.abs(e)<1e4?"$"+(e/1e6).toFixed(6).replace(/0+$/,""):ln(e,2)}function ze(e){return Math.abs(e)<1e4||e%1e4===0?te(e):ln(e,4)}function Co(e){let t=2;for(let o of e)
o>0&&o<100?t=6:o>0&&o<1e4&&(t=Math.max(t,4));return o=>ln(o,t)}function ln(e,t){return"$"+(e/1e6).toLocaleString(Po,{minimumFractionDigits:t,maximumFractionDigits:t})}
function j(e){return e<1024?D(e,"byte"):e<1<<20?(e/1024).toFixed(1)+" KB":(e/(1<<20)).toFixed(1)+" MB"}function Z(e){if(e<1e3)return Math.max(0,Math.round(e))+"\
 ms";let t=Math.round(e/1e3);return t<60?t+" s":t<3600?an(t,60,"min",1,"s"):t<86400?an(t,3600,"h",60,"min"):an(t,86400,"d",3600,"h")}function an(e,t,o,r,s){let i=Math.
floor(e%t/r);return Math.floor(e/t)+" "+o+(i>0?` ${i} ${s}`:"")}var Ds=366;function cn(e,t,o){let r=[];for(let s=e;s<=t&&r.length<Ds;s+=o)r.push(s);return r}function ge(e){
return new Date(e).toISOString().slice(0,10)}function ft(e,t){return cn(Date.parse(e),Date.parse(t),864e5).map(ge)}var Ao=10,Rs=10<<20;function Jo(e){let t=new Date,o=i=>String(i).padStart(2,"0"),s=`${`${t.getFullYear()}-${o(t.getMonth()+1)}-${o(t.getDate())}`}-${o(t.getHours())}${o(
t.getMinutes())}-${crypto.randomUUID().slice(0,4)}`;return["main","web",e.name,s].map(encodeURIComponent).join(":")}function je(e,t,o){return{key:Mo(),session:e,
text:t,files:o,state:"sending",id:"",problem:""}}var Mo=()=>"page-"+crypto.randomUUID(),$s=5;async function Oo(e,t){e.state="sending",e.problem="",t();let o=e.files.
map(s=>({name:s.name,data:s.data})),r={to:"agent",session:e.session,text:e.text,...o.length>0&&{files:o}};for(let s=1;;s++)try{let i=await H(["messages"],e.operator?
{session:e.session,as:"operator",text:e.text}:Is(r),e.key);e.id=i.id,e.state="sent",t();return}catch(i){let a=i instanceof Y?i:new Y(0,"broken",String(i));if(!(a.
status===0||a.status===429||a.status>=500)||s===$s){e.state="refused",e.problem=a.message,t();return}await new Promise(c=>setTimeout(c,Math.min(Math.max(a.retryAfter*
1e3,400*2**s),8e3)))}}var Bo=1500,Ns=12;async function Lo(e,t,o,r){for(let s=0;s<Ns&&e.state==="sent";s++){if(await new Promise(i=>setTimeout(i,Math.min(Bo*1.5**
s,3e4))),r.aborted||o())return;try{let{destinations:i}=await k(["messages",e.id],{},r),a=i.find(l=>l.state==="failed");if(!a)continue;Object.assign(e,{state:"re\
fused",problem:a.error?.message??"It couldn't be delivered.",id:"",key:Mo()}),t()}catch{}}}var Xo=e=>!e.operator&&/^\s*\/[a-z]/i.test(e.text);async function Do(e,t,o,r){
for(let s=0;e.state==="sent";s++){if(await new Promise(i=>setTimeout(i,Math.min(Bo*1.5**s,3e4))),r.aborted||o())return;try{let{destinations:i}=await k(["message\
s",e.id],{},r);if(!i.some(a=>a.state==="sent"))continue;e.state="done",t()}catch(i){if(i instanceof Y&&i.status===404)return}}}function Is(e){let[t="",o]=e.session.
split(":");return o&&t!=="main"?{...e,to:"agent:"+decodeURIComponent(t)}:e}function ae(e){let[t="",o="",r="",s=""]=e.split(":").map(i=>{try{return decodeURIComponent(
i)}catch{return i}});return{agent:t,channel:o,chat:r,thread:s}}function we(e){let{channel:t,chat:o,thread:r}=ae(e);return t==="web"?r||"First session":[o,r].filter(
Boolean).join(" / ")||e}function Ro(e,t){if(!t.may.agent)return!1;let{channel:o,chat:r}=ae(e);return o==="web"&&r===t.name||o==="console"&&t.owner}function $o(e,t){
return t.may.admin&&!["","web","console","agent","webhook","heartbeat"].includes(ae(e).channel)}var dn={get:e=>sessionStorage.getItem("draft "+e)??"",set:(e,t)=>{
t.trim()?sessionStorage.setItem("draft "+e,t):sessionStorage.removeItem("draft "+e)}},Ve={get:e=>{try{return JSON.parse(sessionStorage.getItem("outbox "+e)??"[]").
map(o=>({...o,files:[],state:"sending",id:"",problem:""}))}catch{return[]}},set:(e,t)=>{let o=t.filter(r=>r.state==="sending"&&r.files.length===0).map(({key:r,session:s,
text:i,operator:a})=>({key:r,session:s,text:i,...a&&{operator:a}}));o.length>0?sessionStorage.setItem("outbox "+e,JSON.stringify(o)):sessionStorage.removeItem("\
outbox "+e)}};async function No(e,t){let o=[...t];for(let r of e){if(o.length===Ao)throw new Error(`You can attach up to ${Ao} files to a message.`);if(o.reduce(
(l,c)=>l+c.size,r.size)>Rs)throw new Error("The files are too large. You can attach up to 10 MB to a message.");if(r.size===0)throw new Error(`The file ${r.name}\
 is empty.`);let i=await Us(r),a={name:Fs(r.name,o.length),size:r.size,data:i};/^image\/(png|jpeg|gif|webp)$/.test(r.type)&&(a.preview=URL.createObjectURL(r)),o.
push(a)}return o}function Fs(e,t){return e.replace(/[\p{C}/\\]/gu,"_").slice(-100)||`file-${t+1}`}function Us(e){return new Promise((t,o)=>{let r=new FileReader;
r.onload=()=>t(String(r.result).replace(/^[^,]*,/,"")),r.onerror=()=>o(new Error(`Can't read the file ${e.name}.`)),r.readAsDataURL(e)})}function gt({session:e,running:t,onSay:o,onStop:r}){let[s,i]=Fo(e),[a,l]=f([]),[c,d]=f(null),[u,v]=f(!1),p=A(null),m=A(null);E(()=>{matchMedia("(pointer: fine)").
matches&&p.current?.focus()},[]);let b=_=>{d(null),No(_,a).then(l,d)},w=()=>{!s.trim()&&a.length===0||(o(s,a),i(""),l([]),d(null),p.current?.focus())};return n(
"form",{class:"composer"+(u?" over":""),"aria-label":"Write a message",onSubmit:_=>{_.preventDefault(),w()},onDragOver:_=>{_.preventDefault(),v(!0)},onDragLeave:()=>v(
!1),onDrop:_=>{_.preventDefault(),v(!1),b(_.dataTransfer?.files??[])},children:[n(M,{error:c}),n(Hs,{files:a,onRemove:_=>l(a.filter(P=>P!==_))}),n("div",{class:"\
composer-row",children:[n("input",{ref:m,type:"file",multiple:!0,hidden:!0,onChange:_=>{b([..._.currentTarget.files??[]]),_.currentTarget.value=""}}),n(y,{look:"\
quiet",label:"Add files",onPress:()=>m.current?.click(),children:n(Ws,{})}),n(Uo,{box:p,label:"Message",hint:"Message the agent",text:s,write:i,send:w,paste:b}),
t&&n(y,{look:"danger",onPress:r,children:"Stop"}),n(y,{look:"main",disabled:!s.trim()&&a.length===0,onPress:w,children:"Send"})]})]})}function Io({session:e,channel:t,
onSay:o}){let[r,s]=Fo(e),i=()=>{r.trim()&&(o(r),s(""))};return n("form",{class:"composer operator","aria-label":"Answer as the operator",onSubmit:a=>{a.preventDefault(),
i()},children:[n("p",{id:"operator-note",class:"operator-note",children:[n("strong",{children:"Answer as the operator."})," People on ",t," see your message, ma\
rked as yours. The agent knows of it, and doesn't answer it."]}),n("div",{class:"composer-row",children:[n(Uo,{label:"Answer as the operator",hint:"Answer as th\
e operator",about:"operator-note",text:r,write:s,send:i}),n(y,{look:"main",disabled:!r.trim(),onPress:i,children:"Send as operator"})]})]})}function Fo(e){let[t,
o]=f(()=>dn.get(e));return[t,s=>{o(s),dn.set(e,s)}]}function Uo({label:e,hint:t,about:o,text:r,write:s,send:i,paste:a,box:l}){return n("textarea",{ref:l,rows:Math.
min(r.split(`
`).length,12),"aria-label":e,"aria-describedby":o,placeholder:t,value:r,onInput:c=>s(c.currentTarget.value),onKeyDown:c=>{c.key!=="Enter"||c.shiftKey||c.isComposing||
(c.preventDefault(),i())},onPaste:c=>{let d=[...c.clipboardData?.files??[]];!a||d.length===0||(c.preventDefault(),a(d))}})}function Ws(){return n("svg",{class:"\
icon",viewBox:"0 0 24 24","aria-hidden":"true",children:n("path",{d:"M20 11.5 12 19.5a5 5 0 0 1-7-7l8.5-8.5a3.4 3.4 0 0 1 4.8 4.8l-8.4 8.4a1.7 1.7 0 0 1-2.4-2.4\
l7.6-7.6"})})}function Hs({files:e,onRemove:t}){return e.length===0?null:n("ul",{class:"files","aria-label":"Files to send",children:e.map((o,r)=>n("li",{class:"\
file",children:[o.preview&&n("img",{src:o.preview,alt:""}),n("span",{children:o.name})," ",n("span",{class:"faint",children:j(o.size)}),n("button",{type:"button",
class:"button quiet","aria-label":"Remove "+o.name,onClick:()=>t(o),children:"×"})]},r))})}var qs=/(?![ \n\t])[\p{C}\p{Z}\p{Default_Ignorable_Code_Point}\p{Variation_Selector}\u2800\ufffc\u{16fe4}]/gu;function h(e){return e.replace(qs,t=>{let o=t.codePointAt(
0)??0;return o>65535?"\\U"+o.toString(16).padStart(8,"0"):"\\u"+o.toString(16).padStart(4,"0")})}var un=6e4,mn=60*un,pn=24*mn;function zs(e){let t=e.getTime()-Date.now(),o=Math.abs(t);return o<1e4?"just now":o>30*pn?e.toLocaleDateString():t<0?Wo(o)+" ago":"\
in "+Wo(o)}function Wo(e){if(e<un)return Z(e);if(e<mn)return Z(e-e%un);if(e<pn)return Z(e-e%mn);let t=Math.round(e/pn);return t===1?"1 day":t+" days"}function Ho(e){
let[,t]=f(0);E(()=>{let o=setInterval(()=>t(r=>r+1),e*1e3);return()=>clearInterval(o)},[e])}function fn({at:e,says:t}){let o=new Date(e);return Number.isNaN(o.getTime())?
n("span",{children:e}):n("time",{dateTime:e,title:o.toLocaleString(),children:t(o)})}function T({at:e}){return Ho(10),n(fn,{at:e,says:zs})}function de({at:e}){return Ho(
1),n(fn,{at:e,says:t=>Z(Math.max(1e3,Date.now()-t.getTime()))})}function ht({at:e}){return n(fn,{at:e,says:t=>t.toLocaleTimeString()})}function B({title:e,about:t,done:o,children:r}){let s=A(null),i=A(0);return E(()=>{!o?.said||o.turn===i.current||document.activeElement!==document.body||(i.current=
o.turn,s.current?.focus({preventScroll:!0}))}),n("div",{class:"page sheet",children:[n("h1",{ref:s,tabIndex:-1,children:e}),t&&n("p",{class:"about",children:t}),
o&&n(js,{outcome:o}),r]})}function Q(){let[e,t]=f({said:"",error:null,turn:0});return{...e,say:r=>{t(s=>({said:"",error:null,turn:s.turn})),setTimeout(()=>t(s=>({
said:r,error:null,turn:s.turn+1})),50)},fail:r=>t(s=>({said:"",error:r,turn:s.turn}))}}function js({outcome:e}){return n(g,{children:[n("p",{class:e.said?"note \
done":"away",role:"status",children:e.said}),n(M,{error:e.error})]})}function L({value:e,error:t,again:o}){return t?n(M,{error:t,again:o}):e===void 0?n(se,{}):null}
function V({read:e,rows:t,...o}){return n(g,{children:[n(L,{...e}),e.value!==void 0&&n(z,{...o,rows:t(e.value)})]})}function oe(e){let[t,o]=f(null);if(t===null)
return{ask:o,dialog:null};let{title:r,confirm:s,text:i,act:a}=e(t);return{ask:o,dialog:n(fe,{title:r,confirm:s,danger:!0,onConfirm:a,onClose:()=>o(null),children:i})}}
function bt({label:e,value:t,set:o,children:r}){return n("form",{class:"filters",onSubmit:s=>s.preventDefault(),children:[n("label",{class:"long",children:[e,n(
"input",{type:"search",value:t,spellcheck:!1,onInput:s=>o(s.currentTarget.value)})]}),r]})}function vt(e,...t){let o=t.join(`
`).toLowerCase();return e.toLowerCase().split(/\s+/).every(r=>o.includes(r))}function $({title:e,children:t,wide:o,box:r}){let s="block-"+e.toLowerCase().replace(
/[^a-z]+/g,"-");return n("section",{ref:r,class:"block"+(o?" wide":""),"aria-labelledby":s,tabIndex:r?-1:void 0,children:[n("h2",{id:s,children:e}),t]})}function Oe({
title:e,children:t,close:o}){let r=ce();return n($,{title:e,wide:!0,box:r,children:[t,n("div",{class:"after",children:n(y,{onPress:o,children:"Close"})})]})}function Be({
after:e,next:t,go:o}){return!e&&!t?null:n("div",{class:"after",children:[e&&n(y,{onPress:()=>o(""),children:"First page"}),t&&n(y,{onPress:()=>o(t),children:"Ne\
xt page"})]})}function S({of:e}){return e?n("span",{class:"name",children:h(e)}):null}function F({of:e}){return e?n("a",{class:"name",href:X("chat",e),children:h(
e)}):null}function wt({text:e}){let t=h(e).split("`");return t.length%2===0?n(g,{children:t.join("`")}):n(g,{children:t.map((o,r)=>r%2===1?n("code",{children:o},
r):o)})}function Ke({of:e,label:t,above:o}){return n("div",{class:"preview",children:[o&&n("h3",{children:o}),n("pre",{tabIndex:0,role:"region","aria-label":t,children:n(
"span",{class:"preview-line",children:h(e)})})]})}function yt({of:e,label:t}){return n(Ke,{of:JSON.stringify(e,null,2),label:t})}function kt({spent:e,kept:t=0,look:o}){
return n("svg",{class:"bar "+o,viewBox:"0 0 100 1",preserveAspectRatio:"none","aria-hidden":"true",focusable:"false",children:[n("rect",{class:"all",width:"100",
height:"1"}),t>0&&n("rect",{class:"kept",width:Math.min(100,e+t),height:"1"}),n("rect",{class:"spent",width:Math.min(100,e),height:"1"})]})}function J({look:e,children:t}){
return n("span",{class:"badge "+(e??""),children:t})}var qo=["reset","turn_start","parked","turn_complete","turn_error","ask","ask_resolved","dead_letter","job","job_output","task","channel"],Vs=2e4,zo="parley-eve\
nts",gn=class{followers=new Set;tabs=new BroadcastChannel(zo);leave;constructor(){this.tabs.onmessage=t=>{let o=qo.find(r=>r===t.data?.kind);o&&this.hear({...t.
data,kind:o})}}follow(t){return this.followers.add(t),this.followers.size===1&&document.addEventListener("visibilitychange",this.look),this.look(),()=>{this.followers.
delete(t),!(this.followers.size>0)&&(document.removeEventListener("visibilitychange",this.look),this.look())}}look=()=>{let t=this.followers.size>0&&!document.hidden;
t&&!this.leave?(this.leave=new AbortController,this.lead(this.leave.signal)):t||(this.leave?.abort(),this.leave=void 0)};async lead(t){for(;!t.aborted;){try{await navigator.
locks.request(zo,{signal:t},()=>this.stream(t))}catch(o){if(!t.aborted)throw o;return}t.aborted||await new Promise(o=>setTimeout(o,Vs))}}stream(t){return new Promise(
o=>{let r=new EventSource(ee(["events"]));for(let s of qo)r.addEventListener(s,i=>this.tell(s,i.data));r.addEventListener("error",()=>{r.readyState===EventSource.
CLOSED&&(this.tell("reset","{}"),o())}),t.addEventListener("abort",()=>{r.close(),o()})})}tell(t,o){let{session:r,id:s}=JSON.parse(o),i={kind:t,...r&&{session:r},
...s&&{id:s}};this.tabs.postMessage(i),this.hear(i)}hear(t){for(let o of[...this.followers])o(t)}},jo=new gn;function Vo(e){return jo.follow(e)}function _t(e,t){
let o=A(t);o.current=t;let r=e.join(" ");E(()=>{if(!r)return;let s=new Set(["reset",...r.split(" ")]),i=0,a=jo.follow(({kind:l})=>{!s.has(l)||i||(i=setTimeout(()=>{
i=0,o.current()},250))});return()=>{a(),clearTimeout(i)}},[r])}var Ks=5;function N(e,t,o,r=[],s=0){let[i,a]=f({key:t}),[l,c]=f(0),d=A(e);d.current=e;let u=()=>c(b=>b+1),v=A(0),p=A(0);return _t(r,()=>{v.current||(v.current=setTimeout(
()=>{v.current=0,p.current=Date.now(),u()},Math.max(0,p.current+s-Date.now())))}),E(()=>()=>clearTimeout(v.current),[]),E(()=>{let b=new AbortController,w=!1,_=0,
P=async()=>{if(!(w||document.hidden)){w=!0,clearTimeout(_);try{let I=await d.current(b.signal);b.signal.aborted||a({key:t,value:I})}catch(I){b.signal.aborted||(a(
Ce=>Ce.key===t?{...Ce,error:I}:{key:t,error:I}),_=setTimeout(()=>{P()},Math.min(o,Ks)*1e3))}finally{w=!1}}};P();let x=setInterval(()=>{P()},o*1e3),U=()=>{P()};return document.
addEventListener("visibilitychange",U),()=>{b.abort(),clearInterval(x),clearTimeout(_),document.removeEventListener("visibilitychange",U)}},[t,o,l]),{...i.key===
t?i:{key:t},again:u}}var hn=10<<20,St=e=>/\.(png|jpe?g|gif|webp)$/i.test(e);function xt({session:e,name:t}){let o=O(r=>Ys(e,t,r),t);return E(()=>()=>{o.value&&URL.revokeObjectURL(o.
value)},[o.value]),n(g,{children:[n(L,{...o}),o.value&&n("img",{src:o.value,alt:`Picture ${h(t)}`})]})}async function Ys(e,t,o){let r=await He(ee(["sessions",e,
"files",t]),{signal:o});if(!r.ok)throw await Te(r);if(Number(r.headers.get("Content-Length"))>hn)throw await r.body?.cancel(),new Error("This picture is too lar\
ge to be shown here. You can download it.");let s=await r.arrayBuffer(),i=Gs(new Uint8Array(s));if(!i)throw new Error("This file isn't a picture that the page c\
an show. You can download it.");return URL.createObjectURL(new Blob([s],{type:i}))}function Gs(e){let t=String.fromCharCode(...e.subarray(0,12));return t.startsWith(
`PNG\r

`)?"image/png":t.startsWith("ÿØÿ")?"image/jpeg":/^GIF8[79]a/.test(t)?"image/gif":/^RIFF[^]{4}WEBP/.test(t)?"image/webp":""}var Zs=100;function Ko({session:e,close:t}){let[{folder:o,after:r},s]=f({folder:"",after:""}),[i,a]=f(null),l=N(v=>k(["sessions",e,"files"],{folder:o,after:r,limit:Zs},
v),o+`
`+r,20,["turn_complete"]),c=ce(),d=v=>{a(null),s({folder:v,after:""}),c.current?.focus()},u=l.value;return n("section",{ref:c,class:"files-panel","aria-label":"\
Files of this session",tabIndex:-1,children:[n("div",{class:"between",children:[n(Qs,{folder:o,open:d}),n(y,{look:"quiet",onPress:t,label:"Close the files",children:"\
Close"})]}),n(L,{...l}),u?.files.length===0&&n("p",{class:"none",children:o||r?"No files here.":"This session has no files yet."}),n("ul",{class:"items",children:u?.
files.map(v=>n("li",{children:n(ei,{session:e,file:v,open:d,look:a})},v.name))}),n(Be,{after:r,next:u?.next,go:v=>s({folder:o,after:v})}),i&&n(ti,{session:e,name:i.
name,close:()=>a(null)},i.name)]})}function Qs({folder:e,open:t}){let o=e?e.split("/"):[];return n("nav",{class:"trail","aria-label":"Folders",children:[n(y,{look:"\
quiet",disabled:!e,onPress:()=>t(""),children:"All files"}),o.map((r,s)=>n("span",{children:["/ ",n(y,{look:"quiet",disabled:s===o.length-1,onPress:()=>t(o.slice(
0,s+1).join("/")),children:h(r)})]},s))]})}function ei({session:e,file:t,open:o,look:r}){let s=h(t.name.slice(t.name.lastIndexOf("/")+1));if(t.folder)return n("\
span",{children:n(y,{look:"quiet",onPress:()=>o(t.name),label:`Open the folder ${s}`,children:[s,"/"]})});let i=St(t.name)&&t.bytes<=hn;return n("div",{class:"f\
ile-line",children:[n("span",{class:"name",children:[s," ",n("span",{class:"faint",children:[j(t.bytes),t.changed&&n(g,{children:[", changed ",n(T,{at:t.changed})]})]})]}),
i&&n(y,{onPress:()=>r(t),label:`Show ${s}`,children:"Show"}),n("a",{class:"button",href:ee(["sessions",e,"files",t.name]),download:"","aria-label":`Download ${s}`,
children:"Download"})]})}function ti({session:e,name:t,close:o}){let r=ce();return n("figure",{ref:r,class:"picture",tabIndex:-1,children:[n("figcaption",{class:"\
between",children:[n("span",{class:"name",children:h(t)})," ",n(y,{look:"quiet",onPress:o,label:"Close the picture",children:"Close"})]}),n(xt,{session:e,name:t})]})}var Tt=class{turns=[];spoken=[];asks=new Map;tasks=new Map;jobs=new Map;besides=0;ready=!1;apply(t,o){switch(t){case"snapshot":return this.replace(o);case"messa\
ge":{let r=o;return this.speak(Go(r,r.delta??"",this.turns.at(-1)?.id??""))}}return this.take(t,o)?this.besides++:this.change(t,o),new Set}take(t,o){switch(t){case"\
tasks":return this.tasks=new Map(o.map(r=>[r.id,bn(this.tasks.get(r.id),r)])),!0;case"jobs":return this.jobs=new Map(o.map(r=>[r.id,Yo(this.jobs.get(r.id),r)])),
!0;case"task":{let r=o;return this.tasks.set(r.id,bn(this.tasks.get(r.id),r)),!0}case"job":{let r=o;return this.jobs.set(r.id,Yo(this.jobs.get(r.id),r)),!0}case"\
gone":return this.tasks.delete(o),this.jobs.delete(o),!0}return!1}besideOf(t){return[...this.tasks.values(),...this.jobs.values()].filter(o=>o.turn===t)}change(t,o){
switch(t){case"ask":this.ask(o);return;case"ask_resolved":this.resolve(o);return}if(!o.turn)return;let r=this.turn(o.turn);r.version++,t.startsWith("block_")?oi(
r,t,o):t.startsWith("tool_")?ri(r,t,o):ii(r,t,o)}turn(t){let o=this.turns.findLast(s=>s.id===t);if(o)return o;let r=Et(t);return this.turns.push(r),r}replace(t){
let o=new Map(this.turns.map(s=>[s.id,s]));this.turns=t.turns.map(s=>{let i=o.get(s.turn),a={...Et(s.turn),causes:s.causes,state:s.state};if(!i)return a;let{calls:l,
error:c,usage:d,compacted:u,version:v}=i;return{...a,calls:l,compacted:u,...c&&{error:c},...d&&{usage:d},version:v+1}});for(let s of t.blocks){let i=this.turns.
find(a=>a.id===s.turn);i&&Ye(i,{...vn(s),text:s.text??"",done:s.done??!0})}let r=this.leaveAside();this.spoken=ni(this.spoken,(t.messages??[]).map(s=>Go(s,s.text??
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
return this.turns.findLast(t=>t.state==="running"||t.state==="parked")}};function bn(e,t){return e?.ended&&!t.ended?e:t}function Yo(e,t){let o=e&&!t.ended&&t.printed<
e.printed?e:bn(e,t);return o.output!==void 0||e?.output===void 0||e.printed!==o.printed?o:{...o,output:e.output}}function Et(e){return{id:e,causes:[],state:"run\
ning",blocks:[],calls:new Map,compacted:0,version:0}}function Go(e,t,o){let r=e.kind==="operator"&&{operator:{name:e.name??"",cut:e.cut??!1}};return{id:e.call??
"",turn:e.turn??"",text:t,after:o,...r,...e.command&&{command:e.command}}}function ni(e,t){let o=new Set(t.map(i=>i.id)),r=new Map,s="";for(let i of e)o.has(i.id)?
s=i.id:i.operator||r.set(s,[...r.get(s)??[],i]);return[...r.get("")??[],...t.flatMap(i=>[i,...r.get(i.id)??[]])]}function vn(e){return{number:e.block??0,kind:e.
kind??"text",text:"",tool:e.tool??"",call:e.call??"",...e.input!==void 0&&{input:e.input},failed:e.is_error??!1,cut:e.cut??!1,cause:e.cause??"",name:e.name??"",
done:!1,late:!1}}function Ye(e,t){let o=e.blocks.findIndex(r=>r.number>=t.number);o<0?e.blocks.push(t):e.blocks[o]?.number===t.number?e.blocks[o]=t:e.blocks.splice(
o,0,t)}function oi(e,t,o){let r=o.block??0;if(t==="block_reset"){e.blocks=e.blocks.filter(i=>i.number<r);return}if(delete e.retry,t==="block_start"){Ye(e,vn(o));
return}let s=e.blocks.find(i=>i.number===r);if(s||(s={...vn(o),late:!0},Ye(e,s)),t==="block_delta"){s.text+=o.delta??"";return}s.done=!0,o.input!==void 0&&(s.input=
o.input),s.call=o.call||s.call,s.tool=o.tool||s.tool,s.failed||=o.is_error??!1,s.cut||=o.cut??!1}function ri(e,t,o){let r=o.call??"",s=e.calls.get(r);if(s||(s={
id:r,tool:o.tool??"",brief:"",progress:"",state:"running"},e.calls.set(r,s)),!e.blocks.some(i=>i.call===r)){let i=e.blocks.find(a=>a.kind==="tool_use"&&a.call===
""&&a.tool===o.tool);i&&(i.call=r)}switch(t){case"tool_start":s.brief=o.delta??"",s.state="running";break;case"tool_progress":s.progress=(s.progress+(o.delta??"")+
`
`).slice(-si);break;case"tool_end":s.state=o.error?"failed":"ended",o.error&&(s.error=o.error)}}var si=2e4;function ii(e,t,o){switch(o.causes&&(e.causes=o.causes),
t){case"turn_start":e.state="running";break;case"parked":e.state="parked";break;case"turn_complete":Zo(e),e.state=e.state==="cancelled"?"cancelled":"done",delete e.
retry;break;case"turn_error":Zo(e),e.state=o.error?.code==="cancelled"?"cancelled":"failed",o.error&&(e.error=o.error),delete e.retry;break;case"retry":e.retry=
{attempt:o.attempt??2,after_ms:o.after_ms??0,...o.from&&{from:o.from},...o.to&&{to:o.to}};break;case"compaction":e.compacted++;break;case"usage":ai(e,o)}}function Zo(e){
e.blocks=e.blocks.filter(t=>t.done)}function ai(e,t){let o=e.usage??{calls:0,input:0,output:0,microdollars:0,priced:!0,model:""};e.usage={calls:o.calls+1,input:o.
input+(t.input??0),output:o.output+(t.output??0),microdollars:o.microdollars+(t.microdollars??0),priced:o.priced&&t.microdollars!==void 0,model:t.model||o.model}}
function Qo(e){let t=new Map(e.turns.map(o=>[o.id,o]));return e.spoken.filter(o=>{let r=t.get(o.turn);return!(r&&li(r).includes(er(o.text)))&&!e.asks.has(o.id.split(
"#")[0]??"")})}var er=e=>e.replace(/\s+/g,"");function li(e){if(e.squeezed?.version!==e.version){let t=er(e.blocks.filter(o=>o.kind==="text").map(o=>o.text).join(
""));e.squeezed={version:e.version,text:t}}return e.squeezed.text}var tr=45e3,nr=400,ci=1e4,di=1e4;async function Pt(e,t,o){let r={last:""},s=nr;for(;!o.aborted;){try{await ui(e,r,t,o,()=>{s=nr}),t.state("away")}catch(i){if(o.
aborted)return;if(i instanceof Y&&i.status>=400&&i.status<500&&i.status!==429){t.state("away",i.message);return}t.state("away")}await mi(document.hidden?Number.
POSITIVE_INFINITY:s*(.75+Math.random()/2),o),s=Math.min(s*2,ci)}}async function ui(e,t,o,r,s){let i=new AbortController,a=()=>i.abort();r.addEventListener("abor\
t",a);let l=setTimeout(a,tr),c=setTimeout(()=>{},0),d=()=>{clearTimeout(c),document.hidden&&(c=setTimeout(a,di))};document.addEventListener("visibilitychange",d);
try{let u={Accept:"text/event-stream"};t.last&&(u["Last-Event-ID"]=t.last);let v=await fetch(e,{headers:u,signal:i.signal,credentials:"same-origin",cache:"no-st\
ore"});if(!v.ok||!v.body)throw await Te(v);s(),o.state("live");let p=new wn((b,w,_)=>{b&&(t.last=b),o.event(w,JSON.parse(_))}),m=v.body.pipeThrough(new TextDecoderStream).
getReader();for(;;){let{done:b,value:w}=await m.read();if(b)return;clearTimeout(l),l=setTimeout(a,tr),p.take(w)}}finally{clearTimeout(l),clearTimeout(c),document.
removeEventListener("visibilitychange",d),r.removeEventListener("abort",a),i.abort()}}var wn=class{constructor(t){this.tell=t}tell;rest="";id="";type="";data=[];take(t){
let o=(this.rest+t).split(`
`);this.rest=o.pop()??"";for(let r of o)this.line(r.replace(/\r$/,""))}line(t){if(t===""){this.data.length>0&&this.tell(this.id,this.type,this.data.join(`
`)),this.id=this.type="",this.data=[];return}let o=t.indexOf(":");if(o===0)return;let r=o<0?t:t.slice(0,o),s=o<0?"":t.slice(o+1).replace(/^ /,"");r==="id"?this.
id=s:r==="event"?this.type=s:r==="data"&&this.data.push(s)}};function mi(e,t){return new Promise(o=>{let r=()=>{clearTimeout(i),removeEventListener("online",r),
document.removeEventListener("visibilitychange",s),t.removeEventListener("abort",r),o()},s=()=>{document.visibilityState==="visible"&&r()},i=Number.isFinite(e)?
setTimeout(r,e):void 0;addEventListener("online",r),document.addEventListener("visibilitychange",s),t.addEventListener("abort",r)})}var Ct=class{constructor(t,o,r){this.turns=t;this.changed=o;this.left=r}turns;changed;left;waiting=new Set;goesOn=!1;all(){return this.waiting.size===0?this.turns():
this.turns().filter(t=>!this.waiting.has(t.id))}replace(t){let o=r=>t.has(r.id)&&!this.waiting.has(r.id);this.waiting=new Set(this.turns().filter(r=>!o(r)).map(
r=>r.id)),this.drawMore(40)}drawMore(t){let o=this.turns().filter(r=>this.waiting.has(r.id));for(;t>0;){let r=o.pop();if(!r)break;this.waiting.delete(r.id),t-=pi(
r)}o.length===0?this.waiting.clear():this.goesOn||this.goOn()}goOn(){this.goesOn=!0,requestAnimationFrame(()=>At(()=>{this.goesOn=!1,!this.left.aborted&&(this.drawMore(
20),this.changed())}))}};function pi(e){return e.blocks.reduce((t,o)=>t+1+o.text.length/1e3,1)}function At(e){"requestIdleCallback"in window?requestIdleCallback(
e,{timeout:or}):setTimeout(e,or)}var or=250;var fi=120,gi=10,Jt=class{constructor(t,o){this.key=t;this.known=o}key;known;whole=!1;end=-1;rest=[];async read(t){let o=this.rest,r=this.end<0?await this.last(
t):this.end,s=0;for(;r>0&&s<=gi;){let a=Math.max(0,r-fi),l=await this.between(a,r,t);s+=l.filter(c=>c.kind==="turn_started").length,o=[...l,...o],r=a}this.end=r,
this.whole=r<=0;let i=this.whole?0:o.findIndex(a=>a.kind==="turn_started");return this.rest=i<0?o:o.slice(0,i),i<0?[]:kn(o.slice(i),this.key)}async last(t){let{
last:o}=await k(["sessions",this.key],{after:Number.MAX_SAFE_INTEGER,limit:1},t);return o}async between(t,o,r){let{entries:s}=await yn(this.key,t,o,r),i=this.known();
return s.filter(a=>!i.has(a.turn)&&!i.has(a.data?.of??""))}};async function yn(e,t,o,r){let s=[];for(let i=t;i<o;){let{entries:a,next:l}=await k(["sessions",e],
{after:i,limit:o-i},r);if(s.push(...a.filter(c=>c.n<=o)),l===void 0)return{entries:s,last:!0};i=l}return{entries:s,last:!1}}function kn(e,t,o=!1){let r=new Map,
s=[];for(let i of e){let a=i.data??{},l=hi(i,a,t);l&&s.push(l);let c=r.get(i.turn);if(!c){if(i.kind!=="turn_started"&&!(o&&rr(i,a)))continue;c={...Et(i.turn),state:"\
done",asks:[]},r.set(i.turn,c),s.push(c)}bi(c,i,a,t),i.kind==="turn_done"&&(c.state=a.state??"done",c.state!=="done"&&(c.said=(a.outbound??[]).filter(u=>u.text).
map(u=>({id:u.id+"/0",turn:i.turn,text:u.text,after:i.turn}))));let d=rr(i,a);d&&Ye(c,d)}for(let i of r.values())i.asks=i.asks?.filter(a=>a.state!=="open")??[];
return s.filter(i=>!("blocks"in i)||i.blocks.length>0)}function hi(e,t,o){let r=e.kind==="notice"&&t.code==="operator"?t.quotes?.[0]:void 0;return r?{id:t.of??e.
turn,turn:"",text:r.text,after:"",operator:{name:r.name??"",cut:!1}}:e.kind!=="command"||!t.reply?.text||!["web","console"].includes(ae(o).channel)?null:{id:t.reply.
id+"/0",turn:e.turn,text:t.reply.text,after:"",command:t.name??""}}function bi(e,t,o,r){let s=e.asks??[],i=(a,l)=>{e.asks=s.map(c=>a(c)?{...c,...l}:c)};t.kind===
"turn_parked"&&(e.asks=[...s,...(o.asks??[]).flatMap(a=>vi(a,e,r,t.at))]),t.kind==="ask_ended"&&i(a=>a.id===o.ask,{state:o.state,...o.answer&&{answer:o.answer},
...t.person&&{by:t.person}}),t.kind==="turn_done"&&i(a=>a.state==="open",{state:"withdrawn"})}function vi({id:e,call:t,kind:o,expires:r,...s},i,a,l){if(o==="tas\
k")return[];let c=i.blocks.find(v=>v.kind==="tool_use"&&v.call===t),d={id:e,kind:o,session:a,turn:i.id,person:"",at:l,expires:r,state:"open",...s.reason&&{reason:s.
reason}};if(o==="question")return[{...d,...s.question&&{question:s.question},...s.choices&&{choices:s.choices}}];let u=s.args??c?.input;return[{...d,tool:c?.tool??
"",arguments:u,shown:wi(s.shown??"",s.shown_of??[],u)}]}function wi(e,t,o){if(!e)return[];let r=Object.entries(o??{}).filter(([s])=>!t.includes(s));return[{text:e},
...r.map(([s,i])=>({name:s,text:typeof i=="string"?i:JSON.stringify(i)}))]}function rr(e,t){if(!["user","thinking","text","tool_use","tool_result"].includes(e.kind))
return null;let o={number:e.n,kind:e.kind,call:e.call??"",cause:e.cause??"",cut:!1,done:!0,late:!1};switch(e.kind){case"tool_use":return{...o,text:"",tool:t.name??
"",name:"",input:t.args,failed:!1};case"tool_result":return{...o,text:JSON.stringify(t.content??""),tool:"",name:"",failed:!!t.code};default:return{...o,text:t.
text??"",tool:"",name:t.name??"",failed:!1}}}var sr=50,ir=250,yi=5e3,Mt=class{constructor(t,o,r,s){this.session=t;this.mayJobs=o;this.take=r;this.left=s;s.addEventListener("abort",Vo(i=>this.hear(i)))}session;mayJobs;take;left;wanted=new Set;begun=!1;reading=!1;readAll(){
this.begun=!0,this.want("all")}readJob(t){this.want("jobs/"+t)}hear({kind:t,session:o,id:r}){if(this.begun)if(t==="reset")this.readAll();else{if(o!==this.session)
return;t==="task"?this.want(r?"tasks/"+r:"all"):(t==="job"||t==="job_output")&&r&&this.want("jobs/"+r)}}want(t){t.startsWith("jobs/")&&!this.mayJobs||(this.wanted.
add(t),this.reading||this.readIn(ir))}readIn(t){this.reading=!0,setTimeout(()=>{this.read()},t)}async read(){let t=!1;for(let o of[...this.wanted]){if(this.left.
aborted)return;this.wanted.delete(o);try{await(o==="all"?this.readLists():this.readOne(o))}catch(r){if(this.left.aborted)return;let s=r instanceof Y?r.status:0;
s===404?this.take("gone",o.slice(o.indexOf("/")+1)):s===0||s===429||s>=500?(this.wanted.add(o),t=!0):this.begun=!1}}this.reading=!1,this.wanted.size>0&&this.readIn(
t?yi:ir)}async readLists(){let{tasks:t}=await k(["tasks"],{session:this.session,limit:sr},this.left);if(this.take("tasks",t),!this.mayJobs)return;let{jobs:o}=await k(
["jobs"],{session:this.session,limit:sr},this.left);this.take("jobs",o);for(let r of o)r.state==="running"&&this.wanted.add("jobs/"+r.id)}async readOne(t){let[o="",
r=""]=t.split("/");this.take(o==="tasks"?"task":"job",await k([o,r],{},this.left))}};var ki=3e3,_i=8,Si=120,ar=90,xi=2,Ot=class{constructor(t,o,r,s,i){this.key=t;this.changed=o;let a=(l,c)=>{this.log.apply(l,c),this.draw()};this.work=new Mt(t,s,
a,this.left.signal),this.messages=[...i,...Ve.get(t).filter(l=>!i.some(c=>c.key===l.key))],this.first=this.messages.filter(l=>!l.id),Ve.set(t,this.messages),Pt(
ee(["sessions",t,"events"]),{event:(l,c)=>{this.apply(l,c),l==="snapshot"&&this.work.readAll(),l==="snapshot"&&r&&this.readAsks(),this.draw()},state:(l,c="")=>{
this.live=l==="live",this.live&&this.begin(),this.away=c,this.draw()}},this.left.signal),setTimeout(()=>this.begin(),ki)}key;changed;log=new Tt;messages=[];live=!1;away="";problem="";earlier=[];first;past=null;left=new AbortController;drawn=new Ct(
()=>this.log.turns,()=>this.draw(),this.left.signal);work;frame=0;trims=!1;begin(){if(!this.left.signal.aborted)for(let t of this.first.splice(0))this.send(t)}apply(t,o){
let r=this.log.turns,s=r[0]?.id;this.leave(this.log.apply(t,o)),t==="snapshot"&&this.drawn.replace(new Set(r.map(i=>i.id))),s!==void 0&&this.log.turns[0]?.id!==
s&&(this.earlier=[],this.past=null),this.log.turns.length>Si&&!this.trims&&this.log.mayLeave()>0&&(this.trims=!0,At(()=>this.trim()))}leave(t){t.size!==0&&(this.
messages=this.messages.filter(o=>!o.id||!t.has(o.id)),Ve.set(this.key,this.messages))}trim(){if(this.left.signal.aborted)return;let t=this.log.turns.length;this.
earlier.length>0?this.earlier=this.earlier.slice(1):this.leave(this.log.leave(Math.max(ar,t-xi))),this.past=null,this.draw(),this.trims=this.earlier.length>0||this.
log.turns.length<t&&this.log.turns.length>ar,this.trims&&requestAnimationFrame(()=>At(()=>this.trim()))}mayHaveEarlier(){return this.past?!this.past.whole:this.
log.turns.length>=_i}async readEarlier(){let t=this.past??=new Jt(this.key,()=>this.shown()),o=await t.read(this.left.signal);this.past===t&&(o.length>0&&(this.
earlier=[o,...this.earlier]),this.work.readAll(),this.draw())}shown(){let t=new Set;for(let o of[...this.log.turns,...this.log.spoken,...this.earlier.flat()])t.
add(o.id),"turn"in o&&t.add(o.turn);return t.delete(""),t}readJob=t=>this.work.readJob(t);close(){this.left.abort(),cancelAnimationFrame(this.frame)}say(t,o){this.
add(je(this.key,t,o))}sayAsOperator(t){this.add({...je(this.key,t,[]),operator:!0})}add(t){this.messages=[...this.messages,t],this.send(t)}async send(t){let o=()=>{
Ve.set(this.key,this.messages),this.draw()};await Oo(t,o);let r=()=>!this.pending().includes(t);t.operator?await Lo(t,o,r,this.left.signal):Xo(t)&&await Do(t,o,
r,this.left.signal)}drop(t){this.messages=this.messages.filter(o=>o!==t),this.draw()}pending(){let t=new Set;for(let o of this.log.turns){for(let r of o.causes)
t.add(r);for(let r of o.blocks)r.kind==="user"&&t.add(r.cause)}for(let o of this.log.spoken)t.add(o.operator?o.id:o.turn);return this.messages.filter(o=>o.state!==
"done"&&(!o.id||!t.has(o.id)))}sentOf(t){return this.messages.filter(o=>o.id&&t.causes.includes(o.id)&&!t.blocks.some(r=>r.kind==="user"&&r.cause===o.id))}aside(t,o){
let r=new Map(this.messages.map(s=>[s.id,s]));return t.filter(s=>!o.has(s.turn)).map(s=>{let i=s.turn?r.get(s.turn):void 0;return r.delete(s.turn),i?{message:i,
spoken:s}:{spoken:s}})}async readAsks(){try{let{asks:t}=await k(["asks"],{session:this.key},this.left.signal);for(let o of t)this.log.apply("ask",o);this.problem=
""}catch(t){if(this.left.signal.aborted)return;this.problem="Couldn't load the open requests: "+Je(t)}this.draw()}draw(){this.frame||(this.frame=requestAnimationFrame(
()=>{this.frame=0,this.changed()}))}};function Bt(e){let t=e.shown??[];return(t.length>0||e.arguments===void 0?t:[{text:JSON.stringify(e.arguments,null,2)}]).map(r=>({...r,text:h(r.text)}))}function lr(e){
return e.reduce((t,o)=>t+o.text.split(`
`).length,0)}function Le({parts:e,tool:t,most:o=1/0}){let r=o,s=[];for(let i of e){if(r<=0)break;let a=i.text.split(`
`).slice(0,r);r-=a.length,s.push({part:i,lines:a})}return n("div",{class:"preview",children:s.map(({part:i,lines:a})=>{let l=i.name&&h(i.name);return n("div",{children:[
l&&n("h3",{children:l}),n("pre",{tabIndex:0,role:"region","aria-label":l||"What would run",children:a.map((c,d)=>n(Ei,{text:c,marked:!i.name&&Ti(i.text,t)},d))})]},
i.name??"")})})}function Ti(e,t){return t==="write_file"?!/^[^\n]*(a new file|all of it):\n/.test(e):t==="edit_file"||t==="apply_patch"}function Ei({text:e,marked:t}){
let o="";return t&&e.startsWith("+")?o="plus":t&&e.startsWith("-")?o="minus":t&&/^(@@|\*\*\*)/.test(e)&&(o="head"),n("span",{class:"preview-line "+o,children:e+
`
`})}function cr(e,t){if(t.owner)return"";let o=e.person==="web:"+t.name;return e.kind==="question"?o&&(t.may.agent||t.may.approve)?"":"Only an owner or the person w\
ho started this turn can answer.":o?"You started this turn yourself, so someone else needs to approve the call.":t.may.approve?"":"Your token needs the approve \
scope to decide this."}function Lt(e,t,o=""){return H(["asks",e.id],o?{answer:t,reason:o}:{answer:t})}function Xt({ask:e}){return e.kind==="question"?n(g,{children:"The agent has a question"}):n(g,{children:[n("code",{children:h(e.tool??"A tool")})," needs appro\
val"]})}function Dt({ask:e,me:t,most:o,onDone:r}){let s=cr(e,t);return n(g,{children:[e.reason&&n("p",{children:["Reason: ",h(e.reason)]}),e.kind==="question"?n(
Ci,{ask:e,closed:s!=="",onDone:r}):n(Pi,{ask:e,closed:s!=="",most:o,onDone:r}),s&&n("p",{class:"note",children:s})]})}function Pi({ask:e,closed:t,most:o,onDone:r}){
let s=Bt(e),i=lr(s),[a,l]=f(i<=o),[c,d]=f(""),[u,v]=f(""),[p,m]=f(null),b=h(e.tool??"the call"),w=async x=>r(await Lt(e,x)),_=x=>()=>a?w(x):v(x),P=async()=>r(await Lt(
e,"deny",c.trim()));return n(g,{children:[n(Le,{parts:s,tool:e.tool,most:a?1/0:o}),!a&&n("div",{children:n(y,{onPress:()=>l(!0),children:["Show all ",i," lines"]})}),
n(M,{error:p}),!t&&n(g,{children:[n("div",{class:"decide",children:[n(y,{look:"main",onPress:_("approve"),onError:m,label:`Approve once: ${b}`,children:"Approve\
 once"}),n(y,{onPress:_("session"),onError:m,label:`Approve for this session: ${b}`,children:"Approve for this session"}),n("label",{class:"away",for:"reason-"+
e.id,children:"Reason for denying, which the agent sees"}),n("input",{id:"reason-"+e.id,placeholder:"Why not? (optional)",value:c,onInput:x=>d(x.currentTarget.value)}),
n(y,{look:"danger",onPress:P,onError:m,label:`Deny: ${b}`,children:"Deny"})]}),n("p",{class:"faint",children:"If you approve it for this session, exactly the sa\
me call runs there again without asking."})]}),u&&n(fe,{title:"You haven't seen all of it",confirm:"Approve anyway",onConfirm:()=>w(u),onClose:()=>v(""),children:[
"The call has ",i," lines. You see the first ",o,"."]})]})}function Ci({ask:e,closed:t,onDone:o}){let[r,s]=f(""),[i,a]=f(null),l=async d=>o(await Lt(e,d)),c=()=>l(
r.trim());return n(g,{children:[n("p",{class:"question",children:h(e.question??"")}),n(M,{error:i}),!t&&e.choices&&e.choices.length>0&&n("div",{class:"decide",children:e.
choices.map((d,u)=>n(y,{onPress:()=>l(d),onError:a,children:h(d)},u))}),!t&&n("form",{class:"decide",onSubmit:d=>{d.preventDefault(),r.trim()&&c().catch(a)},children:[
n("label",{class:"away",for:"words-"+e.id,children:"Your answer"}),n("input",{id:"words-"+e.id,placeholder:"Answer in your own words",value:r,onInput:d=>s(d.currentTarget.
value)}),n(y,{disabled:!r.trim(),onPress:c,onError:a,children:"Answer"})]})]})}var Ai=15;function _n({ask:e,me:t}){let[o,r]=f(null),s=e.state==="open"&&o?o:e;if(s.state!=="open")return n(Ji,{ask:s,me:t});let i="ask-"+e.id;return n("div",{class:"\
ask open",role:"group","aria-labelledby":i,children:[n("div",{class:"ask-title",id:i,children:n(Xt,{ask:e})}),n(Dt,{ask:e,me:t,most:Ai,onDone:r}),n("div",{class:"\
faint",children:["Expires ",n(T,{at:e.expires})]})]})}function Ji({ask:e,me:t}){return n("details",{class:"ask ended",children:[n("summary",{children:[e.kind===
"question"?h(e.question??""):n("code",{children:h(e.tool??"")})," ",n("strong",{children:Oi(e,t)})]}),e.reason&&n("div",{children:["Reason: ",h(e.reason)]}),e.kind===
"approval"&&n(Le,{parts:Bt(e),tool:e.tool})]})}var Mi={approve:"Approved",session:"Approved for this session",deny:"Denied"};function Oi(e,t){if(e.state==="expi\
red")return"Expired: nobody answered in time";if(e.state==="withdrawn")return"Withdrawn";let o=e.by?e.by==="web:"+t.name?" by you":" by "+h(e.by):"",r=e.answer??
"";return(e.kind==="approval"?Mi[r]??"Answered":h(r))+o}function Rt(e){switch(e.state){case"running":return["running",e.stopping?"stopping":"running"];case"exited":return[e.exit_code?"failed":"ok",`exit code ${e.exit_code??
0}`];case"stopped":return["over","stopped"];case"killed":return["failed","ended at a limit"];case"failed":return["failed","couldn't be run"];default:return["unk\
nown","outcome unknown"]}}function $t({of:e,session:t}){return n(g,{children:["This ends ",n("code",{class:"name",children:h(e.command)}),t&&n(g,{children:[" of\
 ",n("span",{class:"name",children:h(t)})]}),", which may leave its work half done. The conversation is told."]})}var Bi=4e3,ue=class extends ne{#e="";#t=[];#n=0;shouldComponentUpdate(t){return t.text!==this.props.text}render(){let{text:t}=this.props;t.startsWith(this.#e)||
(this.#e="",this.#t=[],this.#n=0);let o=t.slice(this.#e.length).split(`
`),r=mr(o,0,{left:Bi-this.#n}),s=r.at(-2);if(s&&s.at>0){this.#e+=o.slice(0,s.at).join(`
`)+`
`;for(let i of r.splice(0,r.length-2))this.#t.push(i.part),this.#n+=i.elements}return n("div",{class:"markdown",children:[...this.#t,...r.map(i=>i.part)]})}},ur=6;
function Tn(e,t,o){return mr(e,t,o).map(r=>r.part)}function mr(e,t,o){let r=[],s=0;for(;s<e.length;){let i=e[s]??"";if(i.trim()===""){s++;continue}if(o.left<=0){
r.push({part:n(Li,{text:e.slice(s).join(`
`),told:t===0}),at:s,elements:1});break}let a=o.left--,[l,c]=Xi(e,s,o)??Di(e,s,o)??Ri(i,s,o)??$i(i,s)??Ni(e,s,o)??Ii(e,s,t,o)??Fi(e,s,t,o)??Wi(e,s,o);r.push({part:l,
at:s,elements:a-o.left}),s=c}return r}function Li({text:e,told:t}){return n(g,{children:[t&&n("p",{class:"faint",children:"The rest of this text is too long to \
be formatted."}),n("div",{class:"as-written",children:e})]})}var pr=6;function Xi(e,t,o){let r=/^ {0,3}(`{3,}|~{3,})\s*([^`]*)$/.exec(e[t]??"");if(!r)return null;
let s=r[1]??"```",i=[],a=t+1;for(;a<e.length;a++){let l=e[a]??"",c=l.trim();if(c.startsWith(s)&&c.replaceAll(s[0]??"`","")==="")break;i.push(l)}return o.left-=pr,
[n(Ft,{text:i.join(`
`),language:(r[2]??"").trim().split(/\s/)[0]??""}),a+1]}function Di(e,t,o){let r=/^( {4}|\t)/;if(!r.test(e[t]??""))return null;let s=[],i=t;for(;i<e.length&&(r.
test(e[i]??"")||(e[i]??"").trim()==="");i++)s.push((e[i]??"").replace(r,""));return o.left-=pr,[n(Ft,{text:s.join(`
`).trimEnd()}),i]}function Ft({text:e,language:t=""}){return n("div",{class:"code",children:[n("div",{class:"code-bar",children:[n("span",{children:t}),n("butto\
n",{type:"button",onClick:r=>{let s=r.currentTarget;navigator.clipboard?.writeText(e).then(()=>{s.textContent="Copied"})},children:"Copy"})]}),n("pre",{tabIndex:0,
children:n("code",{children:e})})]})}function Ri(e,t,o){let r=/^ {0,3}(#{1,6})\s+(.*?)\s*#*$/.exec(e);if(!r)return null;let s=le(r[2]??"",o),i=r[1]?.length??1;return i===
1?[n("h3",{class:"large",children:s}),t+1]:[i===2?n("h3",{children:s}):n("h4",{children:s}),t+1]}function $i(e,t){return/^ {0,3}([-*_])\s*(\1\s*){2,}$/.test(e)?
[n("hr",{}),t+1]:null}var Sn=e=>e.trim().replace(/^\||\|$/g,"").split(/(?<!\\)\|/).map(t=>t.trim().replaceAll("\\|","|"));function Ni(e,t,o){let r=e[t]??"";if(!r.
includes("|")||!/^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$/.test(e[t+1]??""))return null;let s=Sn(r),i=s.length+1;if(s.length!==Sn(e[t+1]??"").length||i>o.left)
return null;o.left-=i+3;let a=s.map(u=>n("th",{scope:"col",children:le(u,o)})),l=[],c=t+2;for(;c<e.length&&(e[c]??"").includes("|")&&i<=o.left;c++){o.left-=i;let u=Sn(
e[c]??"");l.push(n("tr",{children:s.map((v,p)=>n("td",{children:le(u[p]??"",o)}))}))}return c<e.length&&(e[c]??"").includes("|")&&(o.left=0),[n("div",{class:"ta\
ble",tabIndex:0,role:"region","aria-label":"Table",children:n("table",{children:[n("thead",{children:n("tr",{children:a})}),n("tbody",{children:l})]})}),c]}function Ii(e,t,o,r){
if(o>=ur||!/^ {0,3}>/.test(e[t]??""))return null;let s=[],i=t;for(;i<e.length&&/^ {0,3}>/.test(e[i]??"");i++)s.push((e[i]??"").replace(/^ {0,3}> ?/,""));return[
n("blockquote",{children:Tn(s,o+1,r)}),i]}var It=/^( *)([-*+]|\d{1,9}[.)])(?:\s+(.*))?$/,Nt=e=>e.slice(-1),ye=e=>e.length-e.trimStart().length;function Fi(e,t,o,r){
let s=It.exec(e[t]??"");if(!s||o>=ur)return null;let i=(s[1]??"").length,a=s[2]??"",l=[],c=!1,d=t,u=0;for(;d<e.length;){let p=e[d]??"",m=It.exec(p),b=m!==null&&
ye(p)<i+2&&ye(p)>=i;if(p.trim()===""){let w=d+1;for(;w<e.length&&(e[w]??"").trim()==="";)w++;let _=e[w]??"",P=It.exec(_),x=P!==null&&ye(_)>=i&&Nt(P[2]??"")===Nt(
a);if(w===e.length||!(x||ye(_)>=u))break;c||=ye(_)<u+2,l.at(-1)?.lines.push(""),d=w}else if(b){if(Nt(m[2]??"")!==Nt(a))break;u=ye(p)+(m[2]??"").length+1,l.push(
{lines:[m[3]??""],at:d}),d++}else if(ye(p)>i)l.at(-1)?.lines.push(p.slice(Math.min(ye(p),u))),d++;else break}let v=[];for(let p of l){if(r.left<=0&&v.length>0){
d=p.at;break}r.left--,v.push(n("li",{children:c?Tn(p.lines,o+1,r):Ui(p.lines,o,r)}))}return[/\d/.test(a)?n("ol",{start:Number.parseInt(a,10),children:v}):n("ul",
{children:v}),d]}function Ui(e,t,o){let[r="",...s]=e,i=/^\[([ xX])\]\s+(.*)$/.exec(r),a=[i?i[2]??"":r];for(;s.length>0&&(s[0]??"").trim()!==""&&!It.test(s[0]??"")&&
!/^ {0,3}(```|~~~|>|#)/.test(s[0]??"");)a.push(s.shift()??"");return[i?i[1]===" "?"☐ ":"☑ ":null,le(a.join(`
`),o),s.some(c=>c.trim())?Tn(s,t+1,o):null]}function Wi(e,t,o){let r=[],s=t;for(;s<e.length;s++){let i=e[s]??"";if(i.trim()===""||s>t&&/^ {0,3}(`{3,}|~{3,}|#{1,6}\s|>|[-*+]\s|\d{1,9}[.)]\s)/.
test(i))break;r.push(i)}return[n("p",{children:le(r.join(`
`),o)}),s]}var Hi=[{first:"\\",at:/^\\([!-/:-@[-`{-~])/,make:e=>e[1]},{first:"`",at:/^(`+)([^`]|[^`][\s\S]*?[^`])\1(?!`)/,make:e=>n("code",{children:(e[2]??"").
replace(/^ (.*) $/,"$1")})},{first:"![",at:/^!?\[((?:[^[\]\\]|\\.)*)\]\(\s*<?([^\s<>()]*(?:\([^\s()]*\)[^\s<>()]*)*)>?(?:\s+"[^"]*")?\s*\)/,make:(e,t)=>xn(e[2]??
"",le(e[1]??"",t),e[0])},{first:"<",at:/^<(https?:\/\/[^\s<>]+|mailto:[^\s<>]+)>/,make:e=>xn(e[1]??"",e[1]??"",e[0])},{first:"h",at:/^https?:\/\/[^\s<>"'`]*[^\s<>"'`.,;:!?)\]}*_~]/,
make:e=>xn(e[0],e[0],e[0])},{first:"*",at:/^\*\*\*(?=[^\s*])([^*]*?[^\s*])\*\*\*/,make:(e,t)=>n("strong",{children:n("em",{children:le(e[1]??"",t)})})},{first:"\
*",at:/^\*\*(?=\S)((?:[^*]|\*(?!\*))*?\S)\*\*/,make:(e,t)=>n("strong",{children:le(e[1]??"",t)})},{first:"_",at:/^__(?=\S)((?:[^_]|_(?!_))*?\S)__(?!\w)/,make:(e,t)=>n(
"strong",{children:le(e[1]??"",t)})},{first:"*",at:/^\*(?=[^\s*])([^*]*?[^\s*])\*(?!\*)/,make:(e,t)=>n("em",{children:le(e[1]??"",t)})},{first:"_",at:/^_(?=[^\s_])([^_]*?[^\s_])_(?!\w)/,
make:(e,t)=>n("em",{children:le(e[1]??"",t)})},{first:"~",at:/^~~(?=\S)([^~]*?\S)~~/,make:(e,t)=>n("s",{children:le(e[1]??"",t)})},{first:` \\
`,at:/^(?: *|\\)\n */,make:()=>n("br",{})},{first:"&",at:/^&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z][a-zA-Z0-9]{1,31});/,make:e=>qi(e[0])}];function qi(e){return new DOMParser().
parseFromString(e,"text/html").body.textContent??e}var dr=/[\\`![<*_~h&]| *\n/g;function le(e,t){let o=[],r="",s=0;for(;s<e.length;){dr.lastIndex=s;let i=dr.exec(
e);if(!i)break;if(r+=e.slice(s,i.index),s=i.index,t.left<=0)return r&&o.push(r),o.push(n("span",{class:"as-written",children:e.slice(s)})),o;let a=ji(e,s,t);if(!a){
r+=e[s],s++;continue}if(s+=a.length,typeof a.part=="string"){r+=a.part;continue}r&&o.push(r),r="",o.push(a.part)}return r+=e.slice(s),r&&o.push(r),o}var zi=2e3;
function ji(e,t,o){let r=e[t-1]??" ",s=e[t]??"";if((s==="_"||s==="h"||s==="*"&&e[t+1]!=="*")&&/\w/.test(r))return null;let a=e.slice(t,t+zi);for(let l of Hi){let c=l.
first.includes(s)?l.at.exec(a):null;if(!c)continue;let d=l.make(c,o);return(typeof d!="string"||s==="&")&&o.left--,{part:d,length:c[0].length}}return null}function xn(e,t,o){
return gr(e)?n("a",{href:e,target:"_blank",rel:"noopener noreferrer",children:t}):o.startsWith("<")?o:[t,` (${e})`]}function fr(e){return/^https?:/i.test(e)&&gr(
e)}function gr(e){try{return/^(https?:\/\/|mailto:)/i.test(e)&&["http:","https:","mailto:"].includes(new URL(e).protocol)}catch{return!1}}function hr({of:e,me:t,readJob:o}){return"command"in e?n(Gi,{job:e,me:t,read:()=>o(e.id)}):n(Ki,{task:e})}var Vi={prepared:["waiting","waiting to start"],running:[
"running","working"],waiting:["waiting","waiting for an answer"],done:["ok","done"],failed:["failed","failed"],cancelled:["over","stopped"],lost:["unknown","its\
 session was erased"]};function Ki({task:e}){let[t,o]=Vi[e.state],r=e.state==="running"&&e.tools?"running "+e.tools.map(h).join(", "):o,s=e.usage.input+e.usage.
output;return n("div",{class:"beside task "+t,role:"group","aria-label":"Sub-agent "+h(e.agent),children:[n("div",{class:"beside-line",children:[n("span",{class:"\
mark","aria-hidden":"true"}),n("span",{children:["Sub-agent ",n("strong",{children:h(e.agent)})]}),n("span",{class:"beside-state",children:e.stopping?"stopping":
r}),!e.ended&&n("span",{class:"faint",children:["for ",n(de,{at:e.started})]}),e.usage.calls>0&&n("span",{class:"faint",title:D(e.usage.calls,"model call"),children:[
C(s)," tokens"]}),e.state!=="lost"&&n("a",{href:X("chat",e.session),"aria-label":"Open its session: sub-agent "+h(e.agent),children:"Open its session"})]}),e.title&&
n("div",{class:"faint",children:h(e.title)}),e.report&&n("details",{class:"beside-more",children:[n("summary",{children:e.state==="done"?"Its answer":"What it r\
eported"}),n(ue,{text:e.report}),e.cut&&n("p",{class:"faint",children:"This is only the beginning. The sub-agent's session has the rest."})]})]})}var Yi=12;function Gi({
job:e,me:t,read:o}){let[r,s]=f(!1),[i,a]=Rt(e),l=h(e.command),c=async()=>{await G(["jobs",e.id]),o()};return n("div",{class:"beside job "+i,role:"group","aria-l\
abel":"Background job "+l,children:[n("div",{class:"beside-line",children:[n("span",{class:"mark","aria-hidden":"true"}),n("code",{class:"beside-command",children:l}),
n("span",{class:"beside-state",children:a}),e.state==="running"&&n("span",{class:"faint",children:["for ",n(de,{at:e.started})]}),t.may.admin&&e.state==="runnin\
g"&&!e.stopping&&n(y,{look:"danger",onPress:()=>s(!0),label:"Stop "+l,children:"Stop…"})]}),e.detail&&n("div",{class:"faint",children:h(e.detail)}),e.state===
"running"?n(Zi,{job:e}):n(Qi,{job:e,read:o}),r&&n(fe,{title:"Stop this job?",confirm:"Stop job",danger:!0,onConfirm:c,onClose:()=>s(!1),children:n($t,{of:e})})]})}
function Zi({job:e}){if(!e.output)return null;let t=e.output.trimEnd().split(`
`);return n(br,{text:t.slice(-Yi).join(`
`),label:"Newest output of "+h(e.command)})}function Qi({job:e,read:t}){return e.printed===0?null:n("details",{class:"beside-more",onToggle:r=>{r.currentTarget instanceof
HTMLDetailsElement&&r.currentTarget.open&&e.output===void 0&&t()},children:[n("summary",{children:["Output, ",j(e.printed)]}),e.output===void 0?n("p",{class:"fa\
int",children:"Loading…"}):n(br,{text:e.output,label:"Output of "+h(e.command)})]})}function br({text:e,label:t}){return n("pre",{class:"beside-output",tabIndex:0,
role:"region","aria-label":t,children:h(e)})}var ea={writing:"writing",waiting:"waiting",running:"running",ok:"done",failed:"failed",unknown:"outcome unknown",over:"ended"},Ge=class extends ne{drawn="";shouldComponentUpdate(t){
return vr(t)!==this.drawn}render(){return this.drawn=vr(this.props),n(ta,{...this.props})}};function vr({call:e,use:t,result:o,over:r}){let s=e?.progress??"";return JSON.
stringify([r,e?.id,e?.state,e?.brief,s.length,s.slice(-80),e?.error?.code,t?.text.length,t?.done,t?.call,t?.tool,t?.cut,o?.text.length,o?.done,o?.failed,o?.cut])}
function ta({session:e,call:t,use:o,result:r,over:s}){let[i,a]=f(!1),l=o?.tool||t?.tool||"tool",c=aa(o),d=c?Ut(c.others):la(o),u=r?ca(r.text):"",v=sa(t,o,r,s),p=t?.
error;return n("details",{class:"call "+v,onToggle:m=>m.currentTarget.open&&a(!0),children:[n("summary",{children:[n("span",{class:"mark","aria-hidden":"true"}),
n("span",{class:"call-name",children:h(l)}),n("span",{class:"call-brief",children:h(t?.brief||da(c?c.others:o?.input,d))}),n("span",{class:"call-state",children:ea[v]})]}),
n("div",{class:"call-body",children:[c&&n("div",{class:"labeled",children:[n("div",{class:"faint",children:["Change",o?.cut&&kr]}),n(Le,{parts:[{text:h(c.lines)}],
tool:l})]}),d!==""&&n(En,{title:"Arguments",text:h(d),cut:o?.cut}),v==="running"&&t?.progress&&n(En,{title:"Progress",text:t.progress}),p&&n("p",{class:"call-er\
ror",children:[p.message," ",n("span",{class:"faint",children:["(",p.code,")"]})]}),v==="unknown"&&n("p",{class:"call-error",children:"The call was interrupted.\
 It may or may not have taken effect."}),r&&u!==""&&!(p&&u.includes(p.message))&&n(En,{title:"Result",text:u,cut:r.cut}),i&&r&&!r.failed&&ra(r.text).map(m=>n(na,
{session:e,name:m},m))]})]})}var kr=" (shortened; the log has the full text)";function En({title:e,text:t,cut:o}){return n("div",{class:"labeled",children:[n("d\
iv",{class:"faint",children:[e,o&&kr]}),n(Ft,{text:t})]})}function na({session:e,name:t}){return n("figure",{class:"picture",children:[n("figcaption",{class:"fa\
int name",children:h(t)}),n(xt,{session:e,name:t})]})}var oa=8;function ra(e){try{let t=JSON.parse(e),o=Array.isArray(t?.content)?t.content:[],r=[t?.path,...o.map(
s=>s?.path)].filter(s=>typeof s=="string").filter(St);return[...new Set(r)].slice(0,oa)}catch{return[]}}function sa(e,t,o,r){return e?.error?.code===wr||o?.failed&&
ia(o.text)===wr?"unknown":o?o.failed?"failed":"ok":e&&e.state!=="running"?e.state==="failed"?"failed":"ok":r?"over":e?"running":t&&!t.done?"writing":"waiting"}var wr="\
outcome_unknown";function ia(e){return/"code"\s*:\s*"([a-z_]+)"/.exec(e)?.[1]??""}function aa(e){if(e?.input===null||typeof e?.input!="object")return null;let{old_text:t,
new_text:o,patch:r,...s}=e.input;return e.tool==="apply_patch"&&typeof r=="string"?{lines:r,others:s}:e.tool!=="edit_file"||typeof t!="string"||typeof o!="strin\
g"?null:{lines:[...yr("-",t),...yr("+",o)].join(`
`),others:s}}var yr=(e,t)=>t===""?[]:t.replace(/\n$/,"").split(`
`).map(o=>e+o);function la(e){if(!e)return"";if(e.input!==void 0)return Ut(e.input);try{return Ut(JSON.parse(e.text))}catch{return e.text}}function Ut(e){return typeof e==
"string"?e:e!==null&&typeof e=="object"&&Object.keys(e).length===0?"":JSON.stringify(e,null,2)}function ca(e){try{return Ut(JSON.parse(e))}catch{return e}}function da(e,t){
let r=(e!==null&&typeof e=="object"?Object.values(e).filter(s=>typeof s!="object").join("  "):t).replace(/\s+/g," ").trim();return r.length>160?r.slice(0,160)+"\
…":r}var Ee=class extends ne{shouldComponentUpdate(t){let o=this.props;return t.turn!==o.turn||t.version!==o.version||t.sent.length!==o.sent.length||t.said.length!==
o.said.length||t.asks.length!==o.asks.length||!ua(t.beside,o.beside)}render(){let{session:t,turn:o,sent:r,said:s,asks:i,beside:a,readJob:l,me:c,numbered:d}=this.
props,u=new Map(o.blocks.filter(w=>w.kind==="tool_result").map(w=>[w.call,w])),{placed:v,rest:p}=ma(i,o),m=w=>w.map(_=>n(hr,{of:_,me:c,readJob:l},_.id)),b=new Set(
o.blocks.filter(w=>w.kind==="tool_use").map(w=>w.call));return n("div",{class:"turn",role:"group","aria-label":"Turn",children:[r.map(w=>n(Xe,{text:w.text,files:w.
files},w.key)),o.blocks.map(w=>{let _=n(ga,{session:t,me:c,block:w,turn:o,result:w.call?u.get(w.call):void 0});return n(g,{children:[d&&pa(w)?n("div",{class:"nu\
mbered "+w.kind,"data-n":w.number,children:_}):_,v.get(w)?.map(P=>n(_n,{ask:P,me:c},P.id)),w.kind==="tool_use"&&m(a.filter(P=>P.call===w.call))]},w.number)}),fa(
o).map(w=>n(Ge,{session:t,call:w,over:Pn(o)},w.id)),m(a.filter(w=>!b.has(w.call))),p.map(w=>n(_n,{ask:w,me:c},w.id)),s.map(w=>n("div",{class:"spoken",children:n(
ue,{text:w.text})},w.id)),n(va,{turn:o,told:s.length>0,me:c})]})}};function ua(e,t){return e.length===t.length&&e.every((o,r)=>o===t[r])}function ma(e,t){let o=new Map,
r=[];for(let s of e){let i=t.blocks.find(a=>a.kind==="tool_use"&&a.tool===s.tool&&!o.has(a));i?o.set(i,[s]):r.push(s)}return{placed:o,rest:r}}var pa=e=>e.kind!==
"tool_result"&&(e.kind==="tool_use"||e.kind==="user"||e.text.trim()!==""),Pn=e=>e.state!=="running"&&e.state!=="parked";function fa(e){return[...e.calls.values()].
filter(t=>!e.blocks.some(o=>o.kind==="tool_use"&&o.call===t.id))}function ga({session:e,me:t,block:o,turn:r,result:s}){switch(o.kind){case"user":return n(Xe,{text:o.
text,name:o.name===t.name?"":o.name,cut:o.cut,children:n(Ze,{of:o.cause===r.id?"":o.cause,me:t})});case"thinking":return o.text.trim()?n(ha,{block:o}):null;case"\
text":return o.text.trim()?n("div",{class:"answer",children:n(ue,{text:o.late?"… "+o.text.trimStart():o.text})}):null;case"tool_use":return n(Ge,{session:e,call:r.
calls.get(o.call),use:o,result:s,over:Pn(r)});default:return null}}function Ze({of:e,me:t}){return t.may.admin&&e?n("div",{class:"standing",children:n(K,{of:e})}):
null}function ha({block:e}){return n("details",{class:"thought",children:[n("summary",{children:e.done?"Thought":"Thinking…"}),n(ue,{text:e.text})]})}function Xe({
text:e,name:t,files:o=[],cut:r,children:s}){return n("div",{class:"said",children:[t&&n("div",{class:"said-name",children:t}),e&&n("div",{class:"said-text",children:[
e,r&&" … (the log has the rest)"]}),o.length>0&&n("ul",{class:"files","aria-label":"Files",children:o.map((i,a)=>n("li",{class:"file",children:[i.preview&&n("\
img",{src:i.preview,alt:""}),n("span",{children:i.name})," ",n("span",{class:"faint",children:j(i.size)})]},a))}),s]})}function De({said:e,me:t}){return n(g,{children:e.
map(({message:o,spoken:r})=>n("div",{class:"turn",children:[o?n(Xe,{text:o.text}):r.command&&n(Xe,{text:"/"+r.command}),r.operator?n(ba,{spoken:r,me:t}):n(g,{children:[
n("div",{class:"spoken",children:n(ue,{text:r.text})}),n(Ze,{of:r.turn||r.id,me:t})]})]},r.id))})}function ba({spoken:{id:e,text:t,operator:o},me:r}){return n("\
div",{class:"said operator",children:[n("div",{class:"said-name",children:["Operator",o?.name&&` (${o.name})`]}),n(ue,{text:t}),o?.cut&&n("div",{class:"faint",children:"\
… (the log has the rest)"}),n(Ze,{of:e,me:r})]})}function va({turn:e,told:t,me:o}){let r=wa(e),s=e.error&&!t&&e.state==="failed"?e.error.message:"";return!r&&
!e.usage&&e.compacted===0&&!o.may.admin?null:n("div",{class:"standing "+e.state,children:[r&&n("span",{class:Pn(e)?"":"pulse",children:r}),s&&n("span",{children:s}),
e.compacted>0&&n("span",{title:"The model now sees a summary in place of earlier messages",children:"summarized earlier messages"}),e.usage&&n(ya,{usage:e.usage}),
o.may.admin&&n(K,{of:e.id})]})}function wa(e){switch(e.state){case"done":return"";case"failed":return"Failed";case"cancelled":return"Stopped";case"parked":return"\
Waiting for an answer"}let t=e.retry;if(!t)return"Working…";let o=t.to?` ${t.to}`:"",r=t.after_ms>=1e3?` in ${Math.round(t.after_ms/1e3)} s`:"";return t.to&&t.
from&&t.to!==t.from?`${t.from} didn't answer. Trying${o}${r}…`:`Asking the model again${r} (attempt ${t.attempt})…`}function ya({usage:e}){let t=e.priced?` \
· ${te(e.microdollars)}`:"";return n("span",{title:`${e.model}: ${D(e.calls,"model call")}`,children:[C(e.input)," tokens in · ",C(e.output)," out",t]})}function _r({me:e,session:t,title:o,begun:r,onActivity:s}){let[,i]=f(0),[a,l]=f(null),[c,d]=f(!1);E(()=>{let b=new Ot(t,()=>i(w=>w+1),e.may.approve||e.may.agent||
e.may.read||e.may.own,e.may.read||e.may.own,r);return l(b),()=>b.close()},[t]);let u=a?.log.running(),v=a?.log.turns.map(b=>b.id+b.state).join();E(s,[v]);let p=Ro(
t,e),m=!p&&$o(t,e);return n("section",{class:"conversation","aria-label":"Conversation",children:[n(xa,{session:t,title:o,own:p,talk:a,running:u!==void 0,files:c,
setFiles:d}),c&&n(Ko,{session:t,close:()=>d(!1)}),n(Ta,{mark:a?.messages.length??0,children:[n(M,{error:a?.away||a?.problem}),a&&!a.log.ready&&!a.away&&n(se,{}),
a?.log.ready&&a.log.turns.length===0&&a.log.spoken.length===0&&a.messages.length===0&&n(re,{children:"No messages yet."}),a?.log.ready&&n(_a,{talk:a,me:e}),a&&n(
ka,{talk:a,me:e})]}),a&&p&&n(gt,{session:t,running:u!==void 0,onSay:(b,w)=>a.say(b,w),onStop:()=>a.say("/stop",[])},t),a&&m&&n(Io,{session:t,channel:ae(t).channel,
onSay:b=>a.sayAsOperator(b)},t),!p&&!m&&n("p",{class:"reading",children:["This conversation",ae(t).channel&&` on ${ae(t).channel}`," is read-only. Start a new c\
hat to talk to the agent."]}),n("p",{class:"away",role:"status",children:u?"The agent is working":"The agent is done"})]})}function ka({talk:e,me:t}){let{turns:o}=e.
log,r=[...e.log.asks.values()],s=Qo(e.log),i=new Set(o.map(l=>l.id)),a=e.aside(s,i);return n(g,{children:[n(De,{said:a.filter(l=>!i.has(l.spoken.after)),me:t}),
e.drawn.all().map(l=>n(g,{children:[n(Ee,{session:e.key,turn:l,version:l.version,sent:e.sentOf(l),said:s.filter(c=>c.turn===l.id),asks:r.filter(c=>c.turn===l.id),
beside:e.log.besideOf(l.id),readJob:e.readJob,me:t}),n(De,{said:a.filter(c=>c.spoken.after===l.id),me:t})]},l.id)),e.pending().map(l=>n(Sa,{message:l,talk:e,me:t},
l.key))]})}function _a({talk:e,me:t}){let[o,r]=f(null);return n(g,{children:[e.mayHaveEarlier()&&n("div",{class:"earlier",children:n(y,{look:"quiet",onPress:()=>e.
readEarlier(),onError:r,children:"Show earlier messages"})}),n(M,{error:o}),e.earlier.map(s=>n(Cn,{part:s,talk:e,besides:e.log.besides,me:t},s[0]?.id))]})}var Cn=class extends ne{shouldComponentUpdate(t){
return t.part!==this.props.part||t.besides!==this.props.besides}render(){let{part:t,talk:o,me:r}=this.props;return n("div",{class:"earlier-part",children:t.map(
s=>"blocks"in s?n(Ee,{session:o.key,turn:s,version:s.version,sent:[],said:s.said??[],asks:s.asks??[],beside:o.log.besideOf(s.id),readJob:o.readJob,me:r},s.id):n(
De,{said:[{spoken:s}],me:r},s.id))})}};function Sa({message:e,talk:t,me:o}){return n("div",{class:"pending "+e.state+(e.operator?" operator":""),children:n(Xe,{
text:e.text,name:e.operator?"Operator":"",files:e.files,children:e.state==="refused"?n("div",{class:"refused",role:"alert",children:[n("span",{children:["Not se\
nt: ",e.problem]}),n(y,{onPress:()=>{t.send(e)},children:"Send again"}),n(y,{look:"quiet",onPress:()=>t.drop(e),children:"Discard"})]}):n(g,{children:[n("div",{
class:"faint",children:e.state!=="sent"?"Sending…":e.operator?"On its way.":"Sent. Waiting for the agent."}),n(Ze,{of:e.id,me:o})]})})})}function xa({session:e,
title:t,own:o,talk:r,running:s,files:i,setFiles:a}){let[l,c]=f(""),{agent:d,channel:u}=ae(e);return n("div",{class:"head",children:[n("a",{class:"back",href:X("\
chat"),"aria-label":"All sessions",children:"‹"}),n("div",{class:"head-title",children:[n("h1",{children:t||we(e)}),n("div",{class:"faint",children:[d," · ",
u,r&&!r.live&&r.log.ready&&!r.away&&n("span",{class:"badge warn",children:" reconnecting…"})]})]}),n(y,{look:"quiet",onPress:()=>a(!i),label:i?"Hide files":"S\
how files",children:"Files"}),o&&r&&n(_o,{label:"Commands",children:[n(y,{look:"quiet",onPress:()=>c("/new"),children:"Start over…"}),n(y,{look:"quiet",disabled:s,
onPress:()=>c("/undo"),children:"Undo the last changes…"}),n(y,{look:"quiet",disabled:s,onPress:()=>r.say("/compact",[]),children:"Summarize the conversation"})]}),
l==="/new"&&n(fe,{title:"Start over?",confirm:"Start over",onConfirm:()=>r?.say("/new",[]),onClose:()=>c(""),children:"The agent forgets everything said in this\
 session so far. You can still read it."}),l==="/undo"&&n(fe,{title:"Undo the last changes?",confirm:"Undo",danger:!0,onConfirm:()=>r?.say("/undo",[]),onClose:()=>c(
""),children:"This restores the session's files to how they were before the last turn that changed any."})]})}function Ta({children:e,mark:t}){let o=A(null),r=A(
null),s=A(!0),i=A(0),a=A(!1),[l,c]=f(!1),d=()=>{let p=o.current;p&&(p.scrollTop=p.scrollHeight,i.current=p.scrollTop)},u=()=>{s.current=!0,d()};E(u,[t]);let v=p=>{
let m=o.current;if(!m)return;let b=m.scrollHeight-m.scrollTop-m.clientHeight>=60;b?(m.scrollTop<i.current||a.current)&&(s.current=!1):s.current=!0,i.current=m.scrollTop,
c(!s.current),s.current&&(b||p)&&d()};return E(()=>{if(!r.current)return;let p=new ResizeObserver(()=>v(!0));return p.observe(r.current),()=>p.disconnect()},[]),
pe(()=>{a.current=!1,s.current&&d()}),n("div",{class:"scroll-frame",children:[n("div",{ref:o,class:"scroll",onScroll:()=>v(!1),onClick:()=>{a.current=!0},tabIndex:0,
role:"log","aria-label":"Messages","aria-live":"off",children:n("div",{ref:r,class:"column",children:e})}),l&&n("button",{type:"button",class:"button newest",onClick:u,
children:"Latest ↓"})]})}var Ea=500,Pa=4e3,Jn=e=>"seen "+e.name;function Ca(e){try{return JSON.parse(localStorage.getItem(Jn(e))??"")}catch{return}}function Aa(e,t){let o=Object.entries(
t.looks),s=o.splice(0,Math.max(0,o.length-Ea)).reduce((i,[,a])=>Math.max(i,a.at),t.since);try{localStorage.setItem(Jn(e),JSON.stringify({since:s,looks:Object.fromEntries(
o)}))}catch{}}var An=e=>Date.parse(e.updated)||0;function Ja(e,t){let o=e.looks[t.key],r=o?.at??e.since;return o?.entries!==t.entries&&An(t)>r}function Sr(e,t,o){
let[r,s]=f(new Set),[i,a]=f(0),l=A({key:"",until:0});return E(()=>{let c=d=>d.key===Jn(e)&&a(u=>u+1);return addEventListener("storage",c),()=>removeEventListener(
"storage",c)},[]),E(()=>()=>{l.current={key:o,until:Date.now()+Pa}},[o]),E(()=>{if(!t)return;let c=Ca(e),d=c??{since:t.reduce((p,m)=>Math.max(p,An(m)),0),looks:{}},
u=p=>p===o&&!document.hidden||p===l.current.key&&Date.now()<l.current.until,v=t.filter(p=>u(p.key)&&d.looks[p.key]?.entries!==p.entries);for(let p of v)delete d.
looks[p.key],d.looks[p.key]={entries:p.entries,at:An(p)};(!c||v.length>0)&&Aa(e,d),s(new Set(t.filter(p=>Ja(d,p)).map(p=>p.key)))},[t,o,i]),r}var Wt=60;function xr({me:e,session:t,title:o,at:r}){let[s,i]=f(null),[a,l]=f(null),c=A(new AbortController),d=async(m,b)=>{let{entries:w,last:_}=await yn(t,m-1,
b,c.current.signal);return{entries:w,from:m,to:b,last:_}},u=()=>{l(null),d(Math.max(1,r-Wt),r+Wt).then(i,m=>c.current.signal.aborted||l(m))};E(()=>(u(),()=>c.current.
abort()),[]);let v=async m=>{let b=await d(Math.max(1,m.from-Wt),m.from-1);i({...m,entries:[...b.entries,...m.entries],from:b.from})},p=async m=>{let b=await d(
m.to+1,m.to+Wt);i({...m,entries:[...m.entries,...b.entries],to:b.to,last:b.last})};return n("section",{class:"conversation","aria-label":"Conversation",children:[
n("div",{class:"head",children:[n("a",{class:"back",href:X("chat"),"aria-label":"All sessions",children:"‹"}),n("div",{class:"head-title",children:[n("h1",{children:o||
we(t)}),n("div",{class:"faint",children:"An earlier part of the conversation"})]}),n("a",{class:"button",href:X("chat",t),children:"Latest messages"})]}),n("div",
{class:"scroll-frame",children:n("div",{class:"scroll",tabIndex:0,role:"log","aria-label":"Messages","aria-live":"off",children:n("div",{class:"column",children:[
n(M,{error:a,again:u}),!s&&!a&&n(se,{}),s&&s.from>1&&n("div",{class:"earlier",children:n(y,{look:"quiet",onPress:()=>v(s),onError:l,children:"Show earlier messa\
ges"})}),s&&n(Ma,{entries:s.entries,session:t,at:r,me:e}),s&&!s.last&&n("div",{class:"earlier",children:n(y,{look:"quiet",onPress:()=>p(s),onError:l,children:"S\
how later messages"})})]})})})]})}function Ma({entries:e,session:t,at:o,me:r}){let s=A(null),i=kn(e,t,!0);return pe(()=>{let a=[...s.current?.querySelectorAll("\
[data-n]")??[]],l=a.findLast(c=>Number(c.dataset.n)<=o)??a[0];l&&(l.classList.add("sought"),l.tabIndex=-1,l.focus({preventScroll:!0}),l.scrollIntoView({block:"c\
enter"}))},[]),n("div",{ref:s,class:"past",children:[i.length===0&&n(re,{children:"These messages have been erased."}),i.map(a=>"blocks"in a?n(Ee,{session:t,turn:a,
version:a.blocks.length,sent:[],said:a.said??[],asks:a.asks??[],beside:[],readJob:()=>{},me:r,numbered:!0},a.id):n(De,{said:[{spoken:a}],me:r},a.id))]})}var Oa=2,Ba=300;function Tr(e){return e.trim().length>=Oa}function Er({words:e,shown:t}){let[o,r]=f("");return E(()=>{let s=setTimeout(()=>r(e),Ba);return()=>clearTimeout(
s)},[e]),n("section",{class:"found","aria-label":"Messages",children:[n("h2",{children:"What was said"}),o?n(La,{words:o,stale:o!==e,shown:t}):n(se,{})]})}function La({
words:e,stale:t,shown:o}){let{value:r,error:s,again:i}=O(l=>k(["search"],{q:e,limit:20},l).then(({hits:c})=>({words:e,hits:c})),e),a=!t&&r?.words===e;return n("\
div",{"aria-busy":!a&&!s,children:[n(M,{error:!t&&s,again:i}),!r&&!s&&n(se,{}),a&&r.hits.length===0&&n(re,{children:"No messages found with these words."}),n("u\
l",{children:r?.hits.map(l=>n(Xa,{hit:l,current:`${l.session} ${l.n}`===o},`${l.session} ${l.n}`))})]})}function Xa({hit:e,current:t}){return n("li",{children:[
n("a",{href:X("chat",e.session,String(e.n)),"aria-current":t?"page":void 0,children:[n("span",{class:"passage",children:e.text}),e.untrusted&&n("span",{class:"b\
adge warn",children:"strangers may have written it"}),n("span",{class:"line faint",children:[n("span",{class:"line-title",children:[Da(e)," · ",e.title||we(e.session)]}),
n(T,{at:e.at})]})]}),e.link&&fr(e.link)&&n("a",{class:"there",href:e.link,target:"_blank",rel:"noopener noreferrer","aria-label":`Open where it was said: ${e.text.
slice(0,60)}`,children:"Open where it was said"})]})}function Da(e){return e.kind==="text"?"agent":e.kind==="summary"?"summary":e.tool||e.name||e.person||e.kind}var Ra=3e4;function Pr(e){let[t,o]=f({running:new Set,waiting:new Set}),r=A(()=>{});return _t(["turn_start","parked","turn_complete","turn_error","ask","ask_res\
olved"],()=>r.current()),E(()=>{let s=new AbortController,i=!1,a=!1;r.current=()=>{s.signal.aborted||(a=i,!i&&(i=!0,$a(e,s.signal).then(o,c=>s.signal.aborted||o(
d=>({...d,error:Je(c)}))).finally(()=>{i=!1,a&&r.current()})))},r.current();let l=setInterval(()=>!document.hidden&&r.current(),Ra);return()=>{s.abort(),clearInterval(
l)}},[]),{...t,again:()=>r.current()}}async function $a(e,t){let o=k(["sessions"],{order:"desc",limit:200},t),r=e.may.read?k(["status"],{},t):Promise.resolve(void 0),
[{sessions:s},i]=await Promise.all([o,r]);return{sessions:s,running:new Set(i?.turns?.list.map(a=>a.session)),waiting:new Set(i?.asks?.list.map(a=>a.session))}}
function Cr({known:e,unread:t,shown:o,at:r}){let[s,i]=f(""),{sessions:a,error:l}=e,c=s.trim().toLowerCase(),d=a?.filter(u=>!c||`${u.title??""} ${u.key}`.toLowerCase().
includes(c));return n("nav",{class:"sessions","aria-label":"Sessions",children:[n("div",{class:"sessions-top",children:[n("input",{type:"search","aria-label":"F\
ilter sessions and search messages",placeholder:"Search",value:s,onInput:u=>i(u.currentTarget.value)}),n("a",{class:"button main",href:X("chat"),"aria-current":o===
""?"page":void 0,children:"New chat"})]}),n(M,{error:l}),!a&&!l&&n(se,{}),d?.length===0&&n(re,{children:c?"No matching sessions.":"No conversations yet."}),n("u\
l",{children:d?.map(u=>n(Na,{session:u,current:u.key===o,known:e,unread:t.has(u.key)},u.key))}),Tr(s)&&n(Er,{words:s.trim(),shown:r>0?`${o} ${r}`:""})]})}function Na({
session:e,current:t,known:o,unread:r}){let{agent:s,channel:i}=ae(e.key),a=o.waiting.has(e.key),l=!a&&o.running.has(e.key);return n("li",{children:n("a",{href:X(
"chat",e.key),"aria-current":t?"page":void 0,children:[n("span",{class:"line",children:[r&&n("span",{class:"unread",role:"img","aria-label":"new"}),n("span",{class:"\
line-title"+(r?" strong":""),children:e.title||we(e.key)}),a&&n("span",{class:"badge warn",children:"waiting"}),l&&n("span",{class:"dot",role:"img","aria-label":"\
working"})]}),n("span",{class:"line faint",children:[n("span",{children:[i,s!=="main"&&` · ${s}`]}),n(T,{at:e.updated})]})]})})}function Ar({me:e,rest:t}){let o=t[0]??"",r=Number(t[1])||0,s=Pr(e),i=Sr(e,s.sessions,o),a=A(new Map),l=s.sessions?.find(d=>d.key===o)?.title??"",c=(d,u)=>{let v=Jo(
e);a.current.set(v,[je(v,d,u)]),Me("chat",v)};return n("div",{class:"chat "+(o?"one":"all"),children:[n(Cr,{known:s,unread:i,shown:o,at:r}),o&&r>0?n(xr,{me:e,session:o,
title:l,at:r},o+" "+r):o?n(_r,{me:e,session:o,title:l,begun:a.current.get(o)??[],onActivity:s.again},o):n(Ia,{mayTalk:e.may.agent,onSay:c})]})}function Ia({mayTalk:e,
onSay:t}){return e?n("section",{class:"conversation beginning","aria-label":"New chat",children:[n("div",{class:"hello",children:[n("h1",{children:"What can the\
 agent do for you?"}),n("p",{class:"faint",children:"Your first message starts a new session. Press Enter to send, Shift+Enter for a new line."})]}),n(gt,{session:"",
running:!1,onSay:t,onStop:()=>{}})]}):n("section",{class:"conversation",children:n("p",{class:"empty",children:"Select a session to read it."})})}var Fa={builtin:"built in",mcp:"MCP server",skill:"skill"},Jr=160;function Mr({me:e}){let o=O(r=>k(["status"],{brief:!0},r),"").value?.role!=="gateway";return n(
B,{title:"Agents",about:"What the bot has: its agents, their tools and skills, and where they may send messages.",children:[!o&&n("p",{class:"note",children:"Th\
is page comes from a gateway, which runs no turns: it doesn't know which tools work where turns run, and lists no skills."}),n(Ua,{works:o}),n(Wa,{}),e.may.admin&&
n("p",{class:"aside",children:["To accept new tools of MCP servers, see ",n("a",{href:X("mcp"),children:"MCP servers"}),"."]}),e.may.admin&&o&&n(Ha,{}),n(qa,{})]})}
function Ua({works:e}){let t=O(o=>k(["agents"],{},o),"");return n(V,{read:t,rows:o=>o.agents,label:"Agents",id:o=>o.name,empty:"There are no agents.",columns:[{
title:"Agent",cell:o=>n(g,{children:[n("strong",{children:n(S,{of:o.name})})," ",e&&!o.answers&&n(J,{look:"bad",children:"no model"})]})},{title:"Models",cell:o=>n(
Re,{of:o.models.map(r=>r.name??r.setting)})},{title:"Capabilities",cell:o=>o.capabilities.length>0?o.capabilities.join(", "):"none"},{title:"Tools",cell:o=>C(o.
tools.length),number:!0},{title:"May message",cell:o=>n(Re,{of:o.may_message})},{title:"Cap per day",cell:o=>o.microdollars_day?te(o.microdollars_day):"none",number:!0}]})}
function Re({of:e}){return e.length>0?n(S,{of:e.join(", ")}):n(g,{children:"none"})}function Wa(){let[e,t]=f(""),o=O(r=>k(["tools"],{},r),"");return n($,{title:"\
Tools",wide:!0,children:[n(bt,{label:"Find tools",value:e,set:t}),n(V,{read:o,rows:r=>r.tools.filter(s=>vt(e,s.name,s.description,s.permission??"",...s.agents)),
label:"Tools that agents have; calls are those in this process since it started",id:r=>r.name,empty:e?"No matching tools.":"No agent has any tools.",columns:[{title:"\
Tool",cell:r=>n(g,{children:[n("code",{children:h(r.name)}),n("br",{}),n("span",{class:"aside",children:Fa[r.origin]??r.origin})]})},{title:"Needs",cell:r=>r.permission??
"nothing"},{title:"Agents",cell:r=>n(Re,{of:r.agents})},{title:"Calls",cell:r=>C(r.calls),number:!0},{title:"Failed",cell:r=>C(r.failed),number:!0},{title:"Desc\
ription",cell:r=>n(Or,{of:r.description})}]})]})}function Or({of:e}){let t=h(e);return t.length<=Jr?n("span",{class:"saying",children:t}):n("details",{children:[
n("summary",{children:[t.slice(0,Jr),"…"]}),n("span",{class:"saying",children:t})]})}function Ha(){let e=O(t=>k(["skills"],{},t),"");return n($,{title:"Skills",
wide:!0,children:n(V,{read:e,rows:t=>t.skills,label:"Your skills",id:t=>t.name,empty:"You have no skills. See docs/skills.md to add one.",columns:[{title:"Skill",
cell:t=>n(g,{children:[n("strong",{children:n(S,{of:t.name})})," ",t.trusted&&n(J,{look:"good",children:"trusted"})]})},{title:"Agents",cell:t=>n(Re,{of:t.agents})},
{title:"Tools",cell:t=>n(Re,{of:t.tools})},{title:"Folder",cell:t=>n("code",{class:"name",children:h(t.folder)})},{title:"Description",cell:t=>n(Or,{of:t.description})}]})})}
function qa(){let e=O(t=>k(["targets"],{},t),"");return n($,{title:"Targets",wide:!0,children:n(V,{read:e,rows:t=>t.targets,label:"Targets of messages",id:t=>t.
name,empty:"No targets are configured. A target is a name for one or more addresses.",columns:[{title:"Target",cell:t=>n("strong",{children:n(S,{of:t.name})})},
{title:"Addresses",cell:t=>n(Re,{of:t.to})}]})})}function Br({decided:e}){let t=O(o=>k(["audit"],{kind:"approval",order:"desc",limit:20},o),String(e));return n($,{title:"Recent decisions",wide:!0,children:n(V,
{read:t,rows:o=>o.records,label:"Decisions made on this page and by programs, newest first",id:o=>String(o.id),empty:"No decisions here yet. For decisions that \
people made in chats, see the tool calls in the audit.",columns:[{title:"When",cell:o=>n(T,{at:o.at})},{title:"Who",cell:o=>n(S,{of:o.by})},{title:"Decision",cell:o=>n(
J,{look:o.result==="denied"?"bad":"good",children:h(o.result)})},{title:"What",cell:o=>n(g,{children:[o.tool&&n("code",{children:h(o.tool)})," ",n("span",{class:"\
aside",children:n(S,{of:o.detail})})]})},{title:"Session",cell:o=>n(F,{of:o.session})}]})})}var za=40;function Lr({me:e,rest:t}){let o=t[0]??"",r=Q(),[s,i]=f(0),a=N(d=>k(["asks"],{},d),"",20,["ask","ask_resolved"]),l=a.value?.asks,c=d=>{r.say(ja(d)),i(
u=>u+1),a.again()};return n(B,{title:"Approvals",done:r,about:"What turns are waiting for. Nothing runs until someone decides. Opening a link to a request never\
 decides it.",children:[n(L,{...a}),l&&o&&!l.some(d=>d.id===o)&&n("p",{class:"note",children:["The request ",n("code",{children:h(o)})," isn't open. Someone dec\
ided it, it expired, or you can't see it."]}),l?.length===0&&n(re,{children:"No open requests. When a tool call needs approval or the agent has a question, you'\
ll see it here."}),l?.map(d=>n(Va,{ask:d,me:e,named:d.id===o,done:c},d.id)),e.may.admin&&n(Br,{decided:s})]})}function ja(e){if(e.kind==="question")return"Answe\
r sent. The agent continues now.";let t=h(e.tool??"the call");return e.answer==="deny"?`You denied ${t}. The agent continues without it.`:`You approved ${t}${e.
answer==="session"?" for this session":""}. It's running now.`}function Va({ask:e,me:t,named:o,done:r}){let s=A(null);E(()=>{o&&(s.current?.scrollIntoView({block:"\
start"}),s.current?.focus({preventScroll:!0}))},[o]);let i="request-"+e.id;return n("article",{ref:s,class:"request"+(o?" named":""),"aria-labelledby":i,tabIndex:-1,
children:[n("h2",{id:i,children:n(Xt,{ask:e})}),n("p",{class:"aside",children:["For ",n(S,{of:e.person})," in ",n(F,{of:e.session}),"; asked ",n(T,{at:e.at}),",\
 expires ",n(T,{at:e.expires})," ",t.may.admin&&n(K,{of:e.turn})]}),e.to&&e.to.length>0&&n("p",{class:"aside",children:["Also asked in ",e.to.map(h).join(", "),
"."]}),n(Dt,{ask:e,me:t,most:za,onDone:r})]})}var Ka=["turn","refusal","tool","pairing","export","replay","forget","job","approval","schedule","operator","memory","sign_in"];function Xr({rest:e}){let[t,o]=f(
{kind:"",session:e[0]??"",person:""}),[r,s]=f([]),i=r.at(-1),a=O(c=>k(["audit"],{...t,order:"desc",limit:50,after:i},c),JSON.stringify([t,i]));return n(B,{title:"\
Audit",about:"What happened, newest first.",children:[n(Ya,{filter:t,choose:c=>{o(c),s([])},refresh:a.again}),n(L,{...a}),a.value&&n(Ga,{records:a.value.records}),
a.value&&n("div",{class:"after",children:[r.length>0&&n(y,{onPress:()=>s(r.slice(0,-1)),children:"Newer"}),a.value.next!==void 0&&n(y,{onPress:()=>s([...r,a.value?.
next??0]),children:"Older"})]})]})}function Ya({filter:e,choose:t,refresh:o}){let[r,s]=f(e.session),[i,a]=f(e.person),l=()=>{let c={...e,session:r.trim(),person:i.
trim()};JSON.stringify(c)===JSON.stringify(e)?o():t(c)};return n("form",{class:"filters",onSubmit:c=>{c.preventDefault(),l()},children:[n("label",{children:["Ki\
nd",n("select",{value:e.kind,onChange:c=>t({...e,kind:c.currentTarget.value}),children:[n("option",{value:"",children:"All"}),Ka.map(c=>n("option",{value:c,children:c.
replace("_"," ")},c))]})]}),n("label",{children:["Session",n("input",{value:r,placeholder:"main:telegram:42",onInput:c=>s(c.currentTarget.value)})]}),n("label",
{children:["Person",n("input",{value:i,placeholder:"telegram:42",onInput:c=>a(c.currentTarget.value)})]}),n("button",{class:"button",type:"submit",children:"App\
ly"})]})}function Ga({records:e}){return n(z,{label:"What happened, newest first",rows:e,id:t=>String(t.id),empty:"No matching records. The audit lists what age\
nts, people and programs did.",columns:[{title:"When",cell:t=>n(T,{at:t.at})},{title:"Kind",cell:t=>t.kind.replace("_"," ")},{title:"Who",cell:t=>n(S,{of:t.by})},
{title:"Where",cell:t=>t.session?n(F,{of:t.session}):n(S,{of:t.address})},{title:"Result",cell:t=>n(el,{of:t})},{title:"Details",cell:t=>n(tl,{of:t})}]})}var Za=new Set(
["ok","done","answered","admitted","replayed","signed in","read","erased","changed","offered","login","accepted","approved","approved for the session"]),Qa=new Set(
["failed","given_up","timeout","permission_denied","denied"]);function el({of:e}){let t=Za.has(e.result)?"good":Qa.has(e.result)?"bad":void 0;return n(g,{children:[
n(J,{look:t,children:[h(e.result),e.exit_code!==void 0&&` (${e.exit_code})`]})," ",(e.kind==="tool"||e.kind==="turn"||e.kind==="job")&&n("span",{class:"aside",children:Z(
e.elapsed_ms)})]})}function tl({of:e}){let t=e.used?[nl(e.used),e.detail].filter(Boolean).join("; "):e.kind==="refusal"?ol(e):e.detail,o=e.turn??e.messages?.at(
-1);return n(g,{children:[e.tool&&n("code",{children:h(e.tool)})," ",t&&n(S,{of:t})," ",o&&n(K,{of:o}),e.arguments!==void 0&&e.arguments!==null&&n("details",{children:[
n("summary",{children:"Arguments"}),n(yt,{of:e.arguments,label:"Arguments"})]})]})}function nl(e){let t=[e.model,D(e.model_calls,"model call"),D(e.calls,"tool c\
all"),C(e.input)+" tokens in",C(e.output)+" out"];return e.microdollars!==void 0&&t.push(te(e.microdollars)),t.filter(Boolean).join(", ")}function ol(e){return D(
e.count??e.messages?.length??1,"message")+(e.detail?"; "+e.detail:"")}function Dr({me:e}){let t=Q(),o=O(s=>k(["sign-ins"],{},s),""),r=oe(s=>({title:s.current?"Sign out here?":"Sign out this browser?",confirm:"Sign out browser",text:n(
g,{children:[Ht(s.device)," (",n(S,{of:s.caller}),") will need to sign in again. ",s.current&&"That's the browser you're using now."]}),act:async()=>{await G(["\
sign-ins",s.id]),t.say(`You signed out ${Ht(s.device)} (${h(s.caller)}).`),o.again()}}));return n(B,{title:"Browsers",done:t,about:e.may.admin?"Browsers that ar\
e signed in to this page.":"Browsers that are signed in to this page with your token.",children:[n(V,{read:o,rows:s=>s.sign_ins,label:"Signed-in browsers, most \
recently used first",id:s=>s.id,empty:"No browsers are signed in.",columns:[{title:"Browser",cell:s=>n(g,{children:[n("span",{title:h(s.device),children:Ht(s.device)}),
" ",s.current&&n(J,{look:"good",children:"this browser"})]})},{title:"Who",cell:s=>n(S,{of:s.caller})},{title:"Signed in",cell:s=>n(T,{at:s.began})},{title:"Las\
t used",cell:s=>n(T,{at:s.seen})},{title:"Actions",cell:s=>n(y,{look:"danger",onPress:()=>r.ask(s),label:`Sign out ${Ht(s.device)} (${s.caller})`,children:"Sign\
 out…"})}]}),r.dialog]})}function Ht(e){let t=s=>s.find(([,i])=>i.test(e))?.[0],o=t([["Edge",/Edg/],["Opera",/OPR/],["Firefox",/Firefox|FxiOS/],["Chrome",/Chrome|CriOS/],
["Safari",/Safari/]]),r=t([["Android",/Android/],["iPhone",/iPhone/],["iPad",/iPad/],["Windows",/Windows/],["macOS",/Mac OS X/],["Linux",/Linux/]]);return o?r?`${o}\
 on ${r}`:o:h(e)||"Unknown browser"}function $r(){let[e,t]=f(""),[o,r]=f(!1),s=O(a=>k(["config"],{},a),""),i=a=>(!o||a.from!=="default")&&vt(e,a.key,Rr(a),a.from);return n(B,{title:"Configuration",
about:"The settings in force. To change one, edit the file and send SIGHUP to the server, or restart it.",children:[s.value&&n("p",{class:"aside",children:["Fil\
e: ",n(S,{of:s.value.file||"none"}),n("br",{}),"Home: ",n(S,{of:s.value.home})]}),s.value?.notices?.map(a=>n("p",{class:"note warn",children:h(a)},a)),n(bt,{label:"\
Find settings",value:e,set:t,children:n("label",{class:"choice",children:[n("input",{type:"checkbox",checked:o,onChange:a=>r(a.currentTarget.checked)})," Hide d\
efaults"]})}),n(V,{read:s,rows:a=>a.settings.filter(i),label:"Settings in force; secrets are ***",id:a=>a.key,empty:"No matching settings.",columns:[{title:"Set\
ting",cell:a=>n(g,{children:[n("code",{class:"name",children:h(a.key)})," ",a.no_effect&&n(J,{look:"warn",children:"no effect yet"})]})},{title:"Value",cell:a=>n(
"code",{class:"name",children:h(Rr(a))})},{title:"From",cell:a=>a.from==="default"?n("span",{class:"aside",children:"default"}):n(S,{of:a.from})}]})]})}function Rr(e){
return JSON.stringify(e.value)}var rl=100;function Nr({me:e}){let t=Q(),[o,r]=f(""),[s,i]=f(""),[a,l]=f(null),c=N(b=>k(["dead-letters"],{topic:o,after:s,order:"desc",limit:rl},b),o+" "+s,30,[
"dead_letter"]),d=sl(e.may.read),u=b=>{r(b),i("")},v=b=>{t.say(b),l(null),c.again()},p=async b=>{let{id:w}=await H(["dead-letters",b.topic,b.id,"replay"]);v(`Re\
played as ${w}.`)},m=oe(b=>({title:"Forget this message?",confirm:"Forget it",text:n(g,{children:["This deletes the message ",n(S,{of:b.id})," for ",n(S,{of:b.key}),
". You can't undo it."]}),act:async()=>{await G(["dead-letters",b.topic,b.id]),v(`Forgot the dead letter ${b.id}.`)}}));return n(B,{title:"Dead letters",done:t,
about:"Messages that couldn't be delivered or answered after several tries. Once you've fixed the cause, you can replay them.",children:[n(il,{topics:d,chosen:o,
choose:u}),n(L,{...c}),c.value&&n(al,{letters:c.value.letters,look:l,replay:p,drop:m.ask,fail:t.fail}),c.value&&n(ll,{page:c.value,topic:o,after:s,go:i}),a&&n(cl,
{of:a,close:()=>l(null)},a.topic+" "+a.id),m.dialog]})}function sl(e){return(O(async o=>e?(await k(["status"],{brief:!0},o)).topics:[],"").value??[]).filter(o=>o.
dead>0)}function il({topics:e,chosen:t,choose:o}){return e.length<2&&!t?null:n("div",{class:"filters",children:n("label",{children:["Topic",n("select",{value:t,
onChange:r=>o(r.currentTarget.value),children:[n("option",{value:"",children:"All"}),e.map(r=>n("option",{value:r.topic,children:[r.topic," (",C(r.dead),")"]},r.
topic))]})]})})}function al({letters:e,look:t,replay:o,drop:r,fail:s}){return n(z,{label:"Dead letters, newest first within each topic",rows:e,id:i=>i.topic+" "+
i.id,empty:"No dead letters. Messages that can't be delivered or answered after several tries show up here.",columns:[{title:"Gave up",cell:i=>n(T,{at:i.buried_at})},
{title:"For",cell:i=>n(g,{children:[n(S,{of:i.key}),n("br",{}),n("span",{class:"aside",children:n(S,{of:i.topic})})]})},{title:"Reason",cell:i=>h(i.reason)},{title:"\
Attempts",cell:i=>C(i.attempts),number:!0},{title:"Size",cell:i=>j(i.bytes),number:!0},{title:"Message",cell:i=>n("div",{class:"rowactions",children:[n(y,{onPress:()=>t(
i),label:`View ${i.id}`,children:"View"}),n(y,{onPress:()=>o(i),onError:s,label:`Replay ${i.id}`,children:"Replay"}),n(y,{look:"danger",onPress:()=>r(i),label:`\
Forget ${i.id}`,children:"Forget…"})]})}]})}function ll({page:e,topic:t,after:o,go:r}){return e.more&&!t?n("p",{class:"none after",children:"There are more. C\
hoose a topic to see them all."}):n(Be,{after:o,next:e.next,go:r})}function cl({of:e,close:t}){let o=O(r=>k(["dead-letters",e.topic,e.id],{},r),e.topic+" "+e.id);
return n(Oe,{title:"Message",close:t,children:[n("p",{class:"aside",children:[n(S,{of:e.id})," ",n(K,{of:e.id})]}),n(L,{...o}),o.value&&n(yt,{of:o.value.message??
"This message isn't JSON, so it can't be shown.",label:"The message"})]})}var dl=1e3;function Fr(){let e=O(a=>k(["doctor"],{},a),""),t=e.value,[o,r]=f(!1),s=o||(t?.running??!1);E(()=>{if(r(!1),!t?.running)return;let a=setTimeout(e.again,
dl);return()=>clearTimeout(a)},[t,e.error]);let i=()=>{r(!0),e.again()};return n(B,{title:"Doctor",about:"What the server finds when it checks its settings, its\
 data, the model and the platforms, as parley doctor does. This takes a few seconds, and asks the model something.",children:[n("div",{class:"filters",children:n(
ul,{checkup:t,running:s,again:i})}),n(M,{error:e.error,again:i}),n("p",{class:"aside",children:[n("span",{role:"status",children:s||!t&&!e.error?"Checking…":t&&
ml(t.findings)})," ",t?.at&&n(g,{children:["Checked ",n(T,{at:t.at}),", in ",Z(t.took_ms),"."]})]}),t?.at&&n(fl,{of:t.findings})]})}function ul({checkup:e,running:t,
again:o}){let[,r]=f(0),s=e?.again?Math.max(0,new Date(e.again).getTime()-Date.now()):0;return E(()=>{if(s===0)return;let i=setTimeout(()=>r(a=>a+1),Math.min(s,1e3));
return()=>clearTimeout(i)}),n(g,{children:[n(y,{look:"main",disabled:!e||t||s>0,onPress:o,children:"Check again"}),s>0&&!t&&n("span",{class:"aside",children:["i\
n ",Z(Math.ceil(s/1e3)*1e3)]})]})}function ml(e){let t=e.filter(o=>o.state==="wrong").length;return t>0?D(t,"thing")+(t===1?" needs":" need")+" a change.":"Ever\
ything works."}var pl={wrong:"bad",note:"warn",ok:"good"},Ir=["wrong","note","ok"];function fl({of:e}){let t=e.map((o,r)=>({...o,n:r})).sort((o,r)=>Ir.indexOf(o.
state)-Ir.indexOf(r.state)||o.n-r.n);return n(z,{label:"What was checked, problems first",rows:t,id:o=>String(o.n),empty:"Nothing was checked.",columns:[{title:"\
Part",cell:o=>n("strong",{class:"name part",children:h(o.part)})},{title:"State",cell:o=>n(J,{look:pl[o.state],children:o.state})},{title:"Finding",cell:o=>n("s\
pan",{class:"name",children:h(o.detail)})},{title:"What to do",cell:o=>o.remedy&&n("span",{class:"name",children:h(o.remedy)})}]})}var gl=100,hl={ok:"good",failed:"bad",unknown:"bad"};function Ur({me:e,rest:t}){let o=Q(),[r,s]=f(t[0]??""),[i,a]=f(null),l=N(d=>k(["jobs"],{session:r,limit:gl},
d),r,15,["job"]),c=oe(d=>({title:"Stop this job?",confirm:"Stop job",text:n($t,{of:d,session:d.session}),act:async()=>{await G(["jobs",d.id]),o.say(`Asked ${d.id}\
 to stop.`),l.again()}}));return n(B,{title:"Jobs",done:o,about:"Commands that agents run in the background, and those that ended in the last 30 days.",children:[
n(bl,{session:r,choose:s}),n(L,{...l}),l.value&&n(vl,{jobs:l.value.jobs,look:a,stop:e.may.admin?c.ask:void 0}),l.value?.more&&n("p",{class:"none after",children:"\
There are more. Choose a session to see its jobs."}),i&&n(yl,{of:i,close:()=>a(null)},i.id),c.dialog]})}function bl({session:e,choose:t}){let[o,r]=f(e);return n(
"form",{class:"filters",onSubmit:s=>{s.preventDefault(),t(o.trim())},children:[n("label",{class:"long",children:["Session",n("input",{value:o,placeholder:"main:\
telegram:42",spellcheck:!1,onInput:s=>r(s.currentTarget.value)})]}),n("button",{class:"button",type:"submit",children:"Apply"})]})}function vl({jobs:e,look:t,stop:o}){
return n(z,{label:"Jobs, those that run first, then newest first",rows:e,id:r=>r.id,empty:"No jobs. A command that an agent runs in the background shows up here\
.",columns:[{title:"State",cell:r=>n(wl,{of:r})},{title:"Command",cell:r=>n("code",{class:"name",children:h(r.command)})},{title:"For",cell:r=>n(g,{children:[n(
S,{of:r.person}),n("br",{}),n(F,{of:r.session})]})},{title:"Started",cell:r=>n(T,{at:r.started})},{title:"Printed",cell:r=>j(r.printed),number:!0},{title:"Actio\
ns",cell:r=>n("div",{class:"rowactions",children:[n(y,{onPress:()=>t(r),label:`Output of ${r.id}`,children:"Output"}),o&&r.state==="running"&&!r.stopping&&n(y,{
look:"danger",onPress:()=>o(r),label:`Stop ${r.id}`,children:"Stop…"})]})}]})}function wl({of:e}){let[t,o]=Rt(e);return n(g,{children:[n(J,{look:hl[t],children:o}),
n("br",{}),e.state==="running"&&n("span",{class:"aside",children:["for ",n(de,{at:e.started}),"; times out ",n(T,{at:e.deadline})]}),e.ended&&n("span",{class:"a\
side",children:n(T,{at:e.ended})}),e.detail&&n("span",{class:"aside",children:[n("br",{}),h(e.detail)]})]})}function yl({of:e,close:t}){let o=N(s=>k(["jobs",e.id],
{},s),e.id,5,["job","job_output"]),r=o.value?.output??"";return n(Oe,{title:"Output",close:t,children:[n("p",{class:"aside",children:n("code",{class:"name",children:h(
e.command)})}),n(L,{...o}),o.value&&!r&&n("p",{class:"none",children:["It printed nothing",o.value.state==="running"&&" yet","."]}),o.value&&r&&n(Ke,{of:r,label:`\
Output of ${e.id}`,above:`Printed ${j(o.value.printed)}; this is the end`})]})}function Wr(e,t){let o=e===void 0?[]:e.split(`
`),r=t.split(`
`),s=0;for(;s<o.length&&s<r.length&&o[s]===r[s];)s++;let i=0;for(;i<o.length-s&&i<r.length-s&&o.at(-1-i)===r.at(-1-i);)i++;let a=l=>({mark:" ",text:l});return[...r.
slice(0,s).map(a),...kl(o.slice(s,o.length-i),r.slice(s,r.length-i)),...r.slice(r.length-i).map(a)]}function kl(e,t){let o=l=>({mark:"-",text:l}),r=l=>({mark:"+",
text:l});if(e.length===0||t.length===0||e.length*t.length>4e6)return[...e.map(o),...t.map(r)];let s=Array.from({length:e.length+1},()=>new Uint32Array(t.length+
1)),i=(l,c)=>s[l]?.[c]??0;for(let l=e.length-1;l>=0;l--){let c=s[l];if(c)for(let d=t.length-1;d>=0;d--)c[d]=e[l]===t[d]?i(l+1,d+1)+1:Math.max(i(l+1,d),i(l,d+1))}
let a=[];for(let l=0,c=0;l<e.length||c<t.length;){let[d,u]=[e[l],t[c]];d!==void 0&&d===u?(a.push({mark:" ",text:d}),l++,c++):d!==void 0&&(u===void 0||i(l+1,c)>=
i(l,c+1))?(a.push(o(d)),l++):u!==void 0&&(a.push(r(u)),c++)}return a}function On(e,t){return H(["mcp",e,"accept"],{tool:t.name,digest:t.digest})}function Hr({server:e,tool:t,changed:o,renew:r,outcome:s,done:i}){let a=h(t.name),l=async()=>{
await On(e,t),s.say(`Accepted ${a}.`),i()};return n("section",{class:"request","aria-label":`${t.was?"Changed":"New"} tool ${a} of ${e}`,children:[n("div",{class:"\
between",children:[n("strong",{children:n("code",{children:a})}),n(J,{look:"warn",children:t.was?"changed":"new"})]}),n(qt,{title:"Description",of:`${a} of ${e}`,
before:t.was?.description,now:t.description,isNew:!t.was}),n(qt,{title:"Arguments",of:`${a} of ${e}`,before:t.was&&Mn(t.was),now:Mn(t),isNew:!t.was}),o?n("p",{class:"\
note warn",children:["The tool changed again while you were looking. ",n(y,{onPress:r,label:`Show ${a} again`,children:"Show it again"})]}):n(y,{look:"main",onPress:l,
onError:s.fail,label:`Accept ${a}`,children:"Accept"})]})}function Mn(e){return JSON.stringify(e.schema,null,2)}function qt({title:e,of:t,before:o,now:r,isNew:s}){
let i={" ":"","+":"plus","-":"minus"},a=Wr(o===void 0?void 0:h(o),h(r)),l=a.some(c=>c.mark!==" ");return n("div",{class:"preview",children:[n("h3",{children:[e,
!s&&!l&&" (unchanged)"]}),n("pre",{tabIndex:0,role:"region","aria-label":`${e}: ${t}`,children:a.map((c,d)=>n("span",{class:"preview-line "+(s?"":i[c.mark]),children:(s?
"":c.mark+" ")+c.text+`
`},d))})]})}function qr({server:e,tools:t}){return n("ul",{class:"items",children:t.map(o=>n("li",{children:n("details",{children:[n("summary",{children:n("code",
{children:n(S,{of:o.name})})}),n(qt,{title:"Description",of:`${h(o.name)} of ${e}`,now:o.description,isNew:!0}),n(qt,{title:"Arguments",of:`${h(o.name)} of ${e}`,
now:Mn(o),isNew:!0})]})},o.name))})}var _l=2e3;function zr({server:e,done:t}){let[o,r]=f(null),[s,i]=f(null),a=async()=>{i(null),r(await H(["mcp",e,"login"]))},l=()=>{r(null),t()};return E(()=>{if(!o)
return;let c=new AbortController,d=async()=>{if(!document.hidden)try{(await k(["mcp",e,"login"],{id:o.id},c.signal)).done?l():Date.now()>Date.parse(o.until)&&(r(
null),i(new Error("The link has expired. Sign in again.")))}catch(v){c.signal.aborted||i(v)}},u=setInterval(()=>{d()},_l);return()=>{c.abort(),clearInterval(u)}},
[o]),n(g,{children:[n(M,{error:s}),o?n(Sl,{begun:o,server:e,done:l}):n(y,{onPress:a,onError:i,label:`Sign in to ${e}`,children:"Sign in…"})]})}function Sl({begun:e,
server:t,done:o}){let[r,s]=f(""),[i,a]=f(null),l=ce(),c=async()=>{await H(["mcp",t,"login"],{address:r.trim()}),o()},d=/^https?:\/\//i.test(e.url);return n("div",
{class:"note",children:n("div",{ref:l,tabIndex:-1,class:"opened",children:[n("p",{children:[d?n("a",{href:e.url,target:"_blank",rel:"noopener noreferrer",children:"\
Open the sign-in page"}):h(e.url)," The link expires ",n(T,{at:e.until}),"."]}),n("p",{children:["Your browser ends up at ",n("code",{children:h(e.ends)}),". If\
 it can't open that page, paste its address here."]}),n(M,{error:i}),n("form",{class:"filters",onSubmit:u=>{u.preventDefault(),r.trim()&&c().catch(a)},children:[
n("label",{class:"long",children:["Address of the last page",n("input",{value:r,autocomplete:"off",spellcheck:!1,onInput:u=>s(u.currentTarget.value)})]}),n(y,{disabled:!r.
trim(),onPress:c,onError:a,children:"Finish"})]})]})})}var xl={up:"up",down:"down",sign_in:"sign-in needed",untried:"not tried here"},Tl={up:"good",down:"bad",sign_in:"warn",untried:void 0};function jr(){let e=Q(),t=N(
r=>k(["mcp"],{},r),"",15),o=t.value?.servers;return n(B,{title:"MCP servers",done:e,about:"Programs and services whose tools agents use. Agents can't use a new \
or changed tool until you accept it.",children:[n(L,{...t}),o?.length===0&&n(re,{children:"No MCP servers are configured. See docs/tools.md to add one."}),o?.map(
r=>n(El,{of:r,outcome:e,again:t.again},r.name))]})}function El({of:e,outcome:t,again:o}){let[r,s]=f(null),i="server-"+e.name,a=async()=>{let c=await H(["mcp",e.
name,"test"]);s(c),c.up?t.say(`${e.name} lists ${D(c.listed,"tool")}, after ${Z(c.ms)}.`):t.fail(new Error(`${e.name} can't be reached: ${h(c.error??"")}`)),o()},
l=()=>{t.say(`Signed in to ${e.name}.`),o()};return n("article",{class:"story","aria-labelledby":i,children:[n("h2",{id:i,children:[n(S,{of:e.name})," ",n(J,{look:Tl[e.
state],children:xl[e.state]})]}),n("p",{class:"aside",children:[e.agents.length>0?`Used by ${e.agents.join(", ")}`:"No agent uses it",e.state==="untried"&&". Th\
is process hasn't tried to reach it; in a fleet, workers do"]}),e.error&&n("p",{class:"trouble",children:h(e.error)}),n("div",{class:"rowactions",children:[n(y,
{onPress:a,onError:t.fail,label:`Test ${e.name}`,children:"Test"}),e.sign_in&&e.state!=="up"&&n(zr,{server:e.name,done:l},e.state)]}),r&&r.unusable.length>0&&n(
"ul",{class:"hints",children:r.unusable.map(c=>n("li",{children:[D(c.tools,"tool")," can't be used: ",c.reason," ",c.names&&n(S,{of:`(${c.names.join(", ")})`})]},
c.reason))}),n(Pl,{server:e,outcome:t,again:o}),e.tools.length>0&&n("details",{children:[n("summary",{children:[D(e.tools.length,"tool")," in use"]}),n(qr,{server:e.
name,tools:e.tools})]})]})}function Pl({server:e,outcome:t,again:o}){let[,r]=f(0),s=A(new Map),i=new Map(e.aside.map(c=>[c.name,s.current.get(c.name)??c]));s.current=
i;let a=c=>{i.set(c.name,c),r(d=>d+1)},l=oe(c=>({title:`Accept ${D(c.length,"tool")}?`,confirm:"Accept all",text:n(g,{children:["Agents read what these tools sa\
y about themselves as if you had said it: ",n(S,{of:c.map(d=>d.name).join(", ")}),". Accept them only if you've read it."]}),act:async()=>{try{for(let d of c)await On(
e.name,d);t.say(`Accepted ${D(c.length,"tool")} of ${e.name}.`)}finally{o()}}}));return e.aside.length===0?null:n(g,{children:[n("div",{class:"between",children:[
n("h3",{children:[D(e.aside.length,"tool")," to accept"]}),e.aside.length>1&&n(y,{onPress:()=>l.ask([...i.values()]),label:`Accept all of ${e.name}`,children:"A\
ccept all…"})]}),e.aside.map(c=>n(Hr,{server:e.name,tool:i.get(c.name)??c,changed:i.get(c.name)?.digest!==c.digest,renew:()=>a(c),outcome:t,done:o},c.name)),l.
dialog]})}var Qe={session:"Conversation",person:"Person",agent:"Agent"},Cl={session:"main:telegram:42",person:"telegram:42",agent:"main"},Vr=["turn_complete","turn_error"];
function Kr({rest:e}){let t=Q(),[o,r]=f(""),[s="",i=""]=e,a=N(l=>k(["memory"],{after:o,limit:100},l),o,30,[...Vr]);return n(B,{title:"Memory",done:t,about:"What\
 agents remember for all conversations, and about people. Agents read this with every message it applies to.",children:[n(Al,{scope:s,owner:i},s+" "+i),i&&n(Jl,
{scope:s,owner:i,outcome:t,changed:a.again},s+" "+i),n($,{title:"All memories",wide:!0,children:[n(V,{read:a,rows:l=>l.memories,label:"Memories of agents and ab\
out people",id:l=>l.scope+" "+l.owner,empty:"Agents remember nothing about people, and nothing for all conversations.",columns:[{title:"Whose",cell:l=>n(g,{children:[
n("strong",{children:n(S,{of:l.owner})}),n("br",{}),n("span",{class:"aside",children:Yr(l.scope).toLowerCase()})]})},{title:"Size",cell:l=>j(l.bytes),number:!0},
{title:"From strangers",cell:l=>l.untrusted?n(J,{look:"warn",children:"maybe"}):"no"},{title:"Changed",cell:l=>n(T,{at:l.changed})},{title:"Actions",cell:l=>n("\
a",{href:X("memory",l.scope,l.owner),"aria-label":`View the memory of ${l.owner}`,children:"View"})}]}),n(Be,{after:o,next:a.value?.next,go:r})]})]})}function Yr(e){
return e in Qe?Qe[e]:e}function Al({scope:e,owner:t}){let[o,r]=f(e in Qe?e:"session"),[s,i]=f(t),a=()=>Me("memory",o,s.trim());return n("form",{class:"filters",
onSubmit:l=>{l.preventDefault(),s.trim()&&a()},children:[n("label",{children:["Memory of",n("select",{value:o,onChange:l=>r(l.currentTarget.value),children:Object.
entries(Qe).map(([l,c])=>n("option",{value:l,children:c},l))})]}),n("label",{class:"long",children:[Qe[o],n("input",{value:s,placeholder:Cl[o],spellcheck:!1,onInput:l=>i(
l.currentTarget.value)})]}),n(y,{look:"main",disabled:!s.trim(),onPress:a,children:"Show"})]})}function Jl({scope:e,owner:t,outcome:o,changed:r}){let s=N(v=>k([
"memory",e,t],{},v),e+" "+t,30,[...Vr]),[i,a]=f(null),l=()=>{s.again(),r()},c=v=>{o.say(v),a(null),l()},d=oe(v=>({title:"Erase this memory?",confirm:"Erase it",
text:n(g,{children:["This erases everything in the memory of ",n(S,{of:t}),". You can't undo it."]}),act:async()=>{await G(["memory",e,t],v.version).catch(p=>Gr(
p,l)),c(`Erased the memory of ${h(t)}.`)}})),u=s.value;return n($,{title:`Memory of ${h(t)}`,wide:!0,children:[n(L,{...s}),u&&n(g,{children:[n("p",{class:"aside",
children:[e==="session"?n(g,{children:["Conversation ",n(F,{of:t})]}):Yr(e),u.content!==""&&n(g,{children:[", ",j(Bn(u.content))," of ",j(u.most_bytes)]})," ",u.
untrusted&&n(J,{look:"warn",children:"strangers may have written some of this"})]}),u.redacted&&n("p",{class:"note",children:"Secrets are hidden here. If you sa\
ve your edit, they're removed from the memory, too."}),u.content===""?n("p",{class:"none",children:"Nothing is remembered here."}):n(Ke,{of:u.content,label:"The\
 memory"}),i?n(Ml,{base:i,now:u,again:l,close:()=>a(null),saved:()=>c(`Saved the memory of ${h(t)}.`)}):n("div",{class:"after",children:[n(y,{onPress:()=>a(u),children:u.
content===""?"Write":"Edit"}),u.content!==""&&n(y,{look:"danger",onPress:()=>d.ask(u),children:"Erase…"})]})]}),d.dialog]})}function Gr(e,t){throw e instanceof
Y&&e.status===412&&t(),e}function Bn(e){return new TextEncoder().encode(e).length}function Ml({base:e,now:t,again:o,saved:r,close:s}){let[i,a]=f(e.content),[l,c]=f(
e.version),[d,u]=f(null),v=ce(),p=t.version!==l,m=Bn(i)>e.most_bytes,b=async()=>{u(null),await ho(["memory",e.scope,e.owner],{content:i},l).catch(w=>Gr(w,o)),r()};
return n("form",{class:"editor",onSubmit:w=>{w.preventDefault(),b().catch(u)},children:[n("label",{class:"long",children:["New text",n("textarea",{ref:v,rows:12,
value:i,onInput:w=>a(w.currentTarget.value)})]}),p&&n("div",{class:"note error",role:"alert",children:[n("span",{children:"This memory changed while you were ed\
iting it. What it says now is shown above. Copy what you need from there."}),n(y,{onPress:()=>{c(t.version),u(null)},children:"Replace it with my text"})]}),m&&
n("p",{class:"note error",role:"alert",children:["That's too long: ",j(Bn(i))," of ",j(e.most_bytes),"."]}),!p&&n(M,{error:d}),n("div",{class:"after",children:[
n(y,{look:"main",disabled:p||m||!i.trim()||i===t.content,onPress:b,onError:u,children:"Save"}),n(y,{onPress:s,children:"Cancel"})]})]})}function Zr({tell:e}){let o=N(r=>k(["asks"],{},r),"",60,["ask","ask_resolved"]).value?.asks.length??0;return E(()=>e(o),[o]),o===0?null:n("span",{class:"badge w\
arn",children:[o,n("span",{class:"away",children:" open"})]})}function zt({caps:e}){return e.length===0?n("p",{class:"none",children:"No cap is in effect, because no model has a known price. See docs/models.md to set price\
s."}):n("ul",{class:"caps",children:e.map(t=>n("li",{children:n(Ol,{cap:t})},t.of+t.span))})}function Ol({cap:e}){let{most_microdollars:t,spent_microdollars:o,reserved_microdollars:r}=e,
s=Math.max(0,t-o-r),i=l=>t>0?100*l/t:100,a=i(o+r);return n(g,{children:[n("span",{class:"between",children:[n("span",{title:e.setting,children:[e.of==="all"?"Ev\
eryone":n(S,{of:e.of}),", ",e.span==="day"?"today":"this month"]}),n("span",{children:[ze(o)," of ",ze(t)]})]}),n(kt,{spent:i(o),kept:i(r),look:a>=100?"over":a>=
80?"near":""}),n("span",{class:"aside",children:[s>0?`${ze(s)} left`:"nothing left",r>0&&`, ${ze(r)} reserved`]})]})}var $e=720,Pe=120;function et({title:e,times:t,series:o,says:r,lines:s,summary:i}){return n("figure",{class:"chart",children:[n("figcaption",{children:[n("h3",{
children:e}),n("ul",{class:"legend",children:o.map(a=>n("li",{children:[n("svg",{class:"key "+a.look+(s?" line":""),viewBox:"0 0 14 10","aria-hidden":"true",focusable:"\
false",children:s?n("path",{d:"M0 5H14"}):n("rect",{width:"14",height:"10"})}),a.name]},a.name))})]}),n(Ln,{label:`${e}. ${i}`,times:t,series:o,says:r,tells:a=>Ll(
o,a,r),lines:s}),n(Rl,{title:e,times:t,series:o,says:r})]})}function Ln({label:e,times:t,series:o,says:r,tells:s,lines:i}){let a=Math.max(...i?o.flatMap(c=>c.values.
map(d=>d??0)):t.map((c,d)=>Bl(o,d))),l=i?n(Dl,{times:t,series:o,most:a}):n(Xl,{times:t,series:o,most:a});return n(g,{children:[n("span",{class:"aside",children:r(
a)}),n("svg",{class:"drawing",viewBox:`0 0 ${$e} ${Pe}`,preserveAspectRatio:"none",role:"img","aria-label":e,children:[n("rect",{class:"rule",width:$e,y:Pe-1,height:"\
1"}),l,t.map((c,d)=>n("rect",{class:"over",x:d*$e/t.length,width:$e/t.length,height:Pe,children:n("title",{children:[c,": ",s(d)]})},d))]}),n("span",{class:"bet\
ween aside",children:[n("span",{children:t[0]}),n("span",{children:t.length>1&&t.at(-1)})]})]})}function Bl(e,t){return e.reduce((o,r)=>o+(r.values[t]??0),0)}function Ll(e,t,o){
let r=e.flatMap(s=>s.values[t]?[`${s.name} ${o(s.values[t])}`]:[]);return r.length>0?r.join(", "):"nothing"}function Xl({times:e,series:t,most:o}){let r=$e/e.length;
return n(g,{children:e.map((s,i)=>{let a=0;return t.map(l=>{let c=l.values[i]??0;if(c===0)return null;let d=Math.max(2,Pe*c/o);return a+=d,n("rect",{class:l.look,
x:i*r+r*.12,width:r*.76,y:Math.max(0,Pe-a),height:d},i+l.name)})})})}function Dl({times:e,series:t,most:o}){let r=$e/e.length,s=i=>i.map((a,l)=>{if(a===null)return"";
let c=(l+.5)*r,d=Pe-2-(Pe-4)*a/o,u=i[l-1];return u==null&&(i[l+1]??null)===null?`M${c-r*.3} ${d}H${c+r*.3}`:`${u==null?"M":"L"}${c} ${d}`}).join("");return n(g,
{children:t.map(i=>n("path",{class:"line "+i.look,d:s(i.values)},i.name))})}function Rl({title:e,times:t,series:o,says:r}){let s=t.map((a,l)=>({time:a,at:l})).filter(
({at:a})=>o.some(l=>l.values[a])),i=[{title:"Time",cell:a=>a.time},...o.map(a=>({title:a.name,cell:l=>a.values[l.at]?r(a.values[l.at]??0):"–",number:!0}))];return n(
"details",{children:[n("summary",{children:["Numbers",n("span",{class:"away",children:[" of ",e]})]}),n(z,{label:e,columns:i,rows:s,id:a=>String(a.at),empty:"No\
thing was counted."})]})}var Dn=36e5,Ne=24*Dn,jt={day:{title:"the last 24 hours",by:"hour",back:23*Dn,step:Dn},month:{title:"the last 30 days",by:"day",back:29*Ne,step:Ne},quarter:{title:"\
the last 90 days",by:"day",back:89*Ne,step:Ne}},$l={hour:2e3,day:2e4};function ts(){let[e,t]=f("day"),{by:o,back:r}=jt[e],s=()=>new Date(Date.now()-r).toISOString(),
i=N(a=>k(["activity"],{by:o,since:s()},a),e,60,["turn_complete","turn_error"],$l[o]);return n($,{title:"Over time",wide:!0,children:[n("div",{class:"filters",children:[
n("label",{children:["Show",n("select",{value:e,onChange:a=>t(a.currentTarget.value),children:Object.keys(jt).map(a=>n("option",{value:a,children:jt[a].title},a))})]}),
o==="day"&&n("span",{class:"aside",children:"Days are in UTC."})]}),n(L,{...i}),n("div",{class:"charts",children:[i.value&&n(Il,{of:i.value,span:e}),n(Hl,{})]}),
i.value&&i.value.total.calls>0&&n(Ul,{tools:i.value.total.tools,more:i.value.total.more_tools})]})}function Nl(e,t){return t===Ne?ge(e):new Date(e).toLocaleString(
"en-US",{weekday:"short",hour:"2-digit",minute:"2-digit",hourCycle:"h23"})}function Il({of:e,span:t}){let{title:o,step:r}=jt[t],{turns:s}=e.total,i=s.failed+s.given_up;
if(i+s.done+s.stopped+s.refused===0&&e.total.calls===0)return n("p",{class:"none",children:["No turn has ended in ",o,". When the agent answers, you'll see here\
 how many answers there are, how long they take, and how its tools do."]});let l=new Map(e.sums.map(p=>[Date.parse(p.at),p])),c=cn(Date.parse(e.since),Date.now(),
r),d=c.map(p=>Nl(p,r)),u=p=>c.map(m=>{let b=l.get(m);return b?p(b):null}),v=[{name:"Answered",look:"c-main",values:u(p=>p.turns.done)},{name:"Failed",look:"c-ba\
d",values:u(p=>p.turns.failed)},{name:"Given up",look:"c-warn",values:u(p=>p.turns.given_up)},{name:"Stopped",look:"c-faint",values:u(p=>p.turns.stopped)},{name:"\
Refused by a limit",look:"c-good",values:u(p=>p.turns.refused)}];return n(g,{children:[n(et,{title:"Answers and errors",times:d,series:v,says:C,summary:`In ${o}\
: ${D(s.done,"answer")}, ${C(i)} failed or given up, ${C(s.stopped)} stopped, ${C(s.refused)} refused.`}),n(Qr,{title:"Until the first text",of:e,times:d,each:u,
pick:p=>p.first_token}),n(Qr,{title:"Until the answer is complete",of:e,times:d,each:u,pick:p=>p.answer}),e.total.calls>0&&n(et,{title:"Calls of tools",times:d,
says:C,summary:`In ${o}: ${D(e.total.calls,"call")}, of which ${C(e.total.failed_calls)} did not succeed.`,series:[{name:"Succeeded",look:"c-main",values:u(p=>p.
calls-p.failed_calls)},{name:"Didn't succeed",look:"c-bad",values:u(p=>p.failed_calls)}]})]})}function Qr({title:e,of:t,times:o,each:r,pick:s}){let i=s(t.total);
if(i.count===0)return n("figure",{class:"chart",children:[n("figcaption",{children:n("h3",{children:e})}),n("p",{class:"none",children:"No answers yet."})]});let a=c=>r(
d=>s(d).count>0?s(d)[c]:null),l=[{name:"Half of them (p50)",look:"c-main",values:a("p50_ms")},{name:"95 in 100 (p95)",look:"c-warn dashed",values:a("p95_ms")}];
return n(et,{title:e,times:o,series:l,says:Z,lines:!0,summary:`Half of ${D(i.count,"answer")} took up to ${Z(i.p50_ms)}, and 95 in 100 up to ${Z(i.p95_ms)}.`})}
var Fl={failed:"failed",denied:"denied",timeout:"timed out",cancelled:"cancelled",unknown:"outcome unknown"};function Ul({tools:e,more:t}){return n(g,{children:[
n("h3",{children:"Tools"}),n(z,{label:"Calls of tools and how they ended",columns:[{title:"Tool",cell:r=>n(S,{of:r.tool})},{title:"Calls",cell:r=>C(r.calls),number:!0},
{title:"Success",cell:r=>n(Wl,{of:r})},{title:"Other outcomes",cell:r=>Object.entries(r.outcomes).filter(([s,i])=>s!=="ok"&&i>0).map(([s,i])=>`${C(i)} ${Fl[s]??
s}`).join(", ")}],rows:e,id:r=>r.tool,empty:"No tool was called."}),t&&n("p",{class:"aside",children:"Other tools were called, too, but less often."})]})}function Wl({
of:e}){let t=100*(e.outcomes.ok??0)/e.calls;return n("span",{class:"success",children:[n("span",{children:[t===100?"100":Math.min(99,Math.floor(t)),"%"]}),n(kt,
{spent:t,look:t>=90?"":t>=50?"near":"over"})]})}var Xn=["c-main","c-good","c-warn","c-bad"],es=14;function Hl(){let e=ge(Date.now()),t=ge(Date.now()-(es-1)*Ne),
o=N(a=>k(["usage"],{by:"day,model",from:t,to:e},a),t,300);if(!o.value)return o.error?n(L,{...o}):null;let r=o.value.usage.filter(a=>a.microdollars>0);if(r.length===
0)return null;let s=ft(t,e),i=r.reduce((a,l)=>a+l.microdollars,0);return n(et,{title:"Cost by day and model",times:s,series:ql(r,s),says:te,summary:`${te(i)} in\
 ${es} days, which are in UTC.`})}function ql(e,t){let o=new Map;for(let l of e)o.set(l.then??"",(o.get(l.then??"")??0)+l.microdollars);let r=[...o].sort((l,c)=>c[1]-
l[1]).map(([l])=>l),s=l=>t.map(c=>e.reduce((d,u)=>u.key===c&&l(u.then??"")?d+u.microdollars:d,0)||null),i=r.slice(0,Xn.length).map((l,c)=>({name:l||"unknown",look:Xn[c]??
"",values:s(d=>d===l)})),a=r.slice(Xn.length);return a.length>0&&i.push({name:"others",look:"c-faint",values:s(l=>a.includes(l))}),i}async function zl(e){let t=ge(Date.now()),[o,r,s]=await Promise.all([k(["status"],{},e),jl(e),k(["usage"],{by:"day",from:t,to:t},e)]);return{status:o,readiness:r,
usage:s}}async function jl(e){let t=await He("/readyz",{signal:e});if(!t.ok&&t.status!==503)throw await Te(t);return await t.json()}function ns({me:e}){let t=N(
zl,"",5,["turn_start","parked","turn_complete","turn_error","ask","ask_resolved","dead_letter","job","channel"]),o=t.value;return n(B,{title:"Overview",children:[
n(L,{...t}),o&&n(g,{children:[n("p",{class:"about",children:["Parley ",o.status.version," (",o.status.role,"), up for ",n(de,{at:o.status.started})," ",n(Vl,{readiness:o.
readiness})]}),n(Kl,{now:o,me:e}),n("div",{class:"blocks",children:[n(Gl,{status:o.status,me:e}),n(Zl,{status:o.status}),n(Ql,{usage:o.usage}),n(ec,{status:o.status})]}),
n(ts,{})]})]})}function Vl({readiness:e}){let t=Object.entries(e.parts).filter(([,o])=>o!=="ok");return e.ready&&t.length===0?n(J,{look:"good",children:"ready"}):
n(g,{children:[n(J,{look:"bad",children:"not ready"}),t.map(([o,r])=>n("span",{class:"trouble",children:[" ",o,": ",r]},o))]})}function Kl({now:e,me:t}){let{status:o,
usage:r}=e,s=o.topics.reduce((c,d)=>c+d.dead,0),i=o.channels.filter(c=>!c.up).length,a=r.usage.reduce((c,d)=>c+d.microdollars,0),l=o.asks?.count??0;return n("ul",
{class:"tiles",children:[n(Ie,{figure:C(o.turns?.count??0),what:"running"}),n(Ie,{figure:C(o.waiting?.count??0),what:"waiting"}),n(Ie,{figure:C(l),what:qe(l,"op\
en request"),look:l?"warn":"",to:t.may.approve?X("approvals"):void 0}),n(Ie,{figure:C(s),what:qe(s,"dead letter"),look:s?"bad":"",to:t.may.admin?X("dead-letters"):
void 0}),n(Ie,{figure:i?`${i} of ${o.channels.length}`:C(o.channels.length),what:`${qe(o.channels.length,"channel")} ${i?"down":"up"}`,look:i?"bad":""}),n(Ie,{figure:te(
a),what:"today",to:X("usage")})]})}function Ie({figure:e,what:t,look:o,to:r}){let s=n(g,{children:[n("strong",{class:o,children:e})," ",n("span",{children:t})]});
return n("li",{children:r?n("a",{href:r,children:s}):n("div",{children:s})})}function Yl(e){return e.turn?e.calls.length===0?n(g,{children:"calling the model"}):
n(g,{children:["running ",e.calls.map((t,o)=>n("span",{children:[o>0&&", ",n("code",{children:t.tool||"a tool"})," for ",n(de,{at:t.since})]},t.call))]}):n(g,{children:"\
starting or finishing"})}function tt({of:e,id:t,item:o,empty:r}){return!e||e.count===0?n("p",{class:"none",children:r}):n(g,{children:[n("ul",{class:"items",children:e.
list.map(s=>n("li",{children:o(s)},t(s)))}),e.count>e.list.length&&n("p",{class:"none",children:["and ",C(e.count-e.list.length)," more"]})]})}function Gl({status:e,
me:t}){return n(g,{children:[n($,{title:"Running now",children:n(tt,{of:e.turns,id:o=>o.session,empty:"Nothing is running. You'll see a turn here while the agen\
t works on an answer.",item:o=>n(g,{children:[n(F,{of:o.session}),n("span",{class:"aside",children:[Yl(o),"; ",n(de,{at:o.since})," so far",o.person&&n(g,{children:[
", ",n(S,{of:o.person})]})," ",t.may.admin&&n(K,{of:o.turn})]})]})})}),n($,{title:"Waiting for a worker",children:n(tt,{of:e.waiting,id:o=>o.session,empty:"No m\
essages are waiting.",item:o=>n(g,{children:[n(F,{of:o.session}),n("span",{class:"aside",children:[D(o.messages,"message"),", the first one ",n(T,{at:o.since}),
o.next&&n(g,{children:["; next try ",n(T,{at:o.next})]})," ",t.may.admin&&n(K,{of:o.session})]})]})})}),n($,{title:"Waiting for people",children:n(tt,{of:e.asks,
id:o=>o.id,empty:"No open requests.",item:o=>n(g,{children:[t.may.approve?n("a",{href:X("approvals",o.id),children:o.tool||o.kind}):n("strong",{children:o.tool||
o.kind}),n("span",{class:"aside",children:["for ",n(S,{of:o.person}),", asked ",n(T,{at:o.since}),"; expires ",n(T,{at:o.expires}),"; ",o.decides.join(" or "),"\
 can answer"]})]})})}),n($,{title:"Jobs",children:n(tt,{of:e.jobs,id:o=>o.id,empty:"No background commands are running.",item:o=>n(g,{children:[n(F,{of:o.session}),
n("span",{class:"aside",children:[n("code",{children:o.tool})," for ",n(de,{at:o.since}),"; times out ",n(T,{at:o.deadline})]})]})})})]})}function Zl({status:e}){
let t=e.topics.filter(o=>o.dead>0);return n($,{title:"Channels",children:[e.channels.length===0&&n("p",{class:"none",children:"No channels are configured. Run p\
arley onboard to add one."}),n("ul",{class:"items",children:e.channels.map(o=>n("li",{children:[n("span",{children:[n("strong",{children:o.name})," ",o.up?n(J,{
look:"good",children:"up"}):n(J,{look:"bad",children:"down"}),o.since&&n("span",{class:"aside",children:[" for ",n(de,{at:o.since})]})]}),!o.up&&o.reason&&n("sp\
an",{class:"trouble",children:o.reason}),(o.platform||o.bot)&&n("span",{class:"aside",children:[o.platform,o.bot&&n(g,{children:[" as ",n(S,{of:o.bot})]})]}),o.
last_in&&n("span",{class:"aside",children:["last message from people ",n(T,{at:o.last_in})]}),o.last_out&&n("span",{class:"aside",children:["last message sent ",
n(T,{at:o.last_out})]})]},o.name))}),t.length>0&&n(g,{children:[n("h3",{children:"Dead letters"}),n("ul",{class:"items",children:t.map(o=>n("li",{children:n("sp\
an",{children:[n(S,{of:o.topic}),": ",D(o.dead,"dead letter")]})},o.topic))})]})]})}function Ql({usage:e}){let t=e.usage.reduce((r,s)=>r+s.calls,0),o=e.usage.reduce(
(r,s)=>r+s.unpriced,0);return n($,{title:"Cost",children:[n("p",{class:"none",children:[t===0?"No model calls today (UTC).":`${D(t,"model call")} today (UTC).`,
o>0&&` The price of ${C(o)} is unknown.`]}),n(zt,{caps:e.caps})]})}function ec({status:e}){return n($,{title:"Due next",children:n(tt,{of:e.schedules,id:t=>t.id,
empty:"Nothing is scheduled.",item:t=>n(g,{children:[n(T,{at:t.next}),n("span",{class:"aside",children:["for ",n(S,{of:t.person})," in ",n(F,{of:t.session})]})]})})})}var tc={owner:"owner",admitted:"has access",asks:"wants access"};function os(){let e=Q(),t=N(s=>k(["pairings"],{},s),"",10),o=async s=>{let i=await H(["pairings"],
{code:s});e.say(`${nt(i)} now has access.`),t.again()},r=oe(s=>({title:s.state==="asks"?"Refuse access?":"Revoke access?",confirm:s.state==="asks"?"Refuse":"Rev\
oke",text:n(g,{children:[nt(s)," (",n(S,{of:s.person}),") ",s.state==="asks"?"will need to ask for access again.":"can't talk to the agent anymore, unless someo\
ne gives them access again."]}),act:async()=>{await G(["pairings",s.person]),e.say(s.state==="asks"?`You refused ${nt(s)} access.`:`${nt(s)} no longer has acces\
s.`),t.again()}}));return n(B,{title:"People",done:e,about:"People who got access with a code, people who want it, and those whom the configuration names.",children:[
n(nc,{admit:o,outcome:e}),n(V,{read:t,rows:s=>s.pairings,label:"People who have access or want it",id:s=>s.person,empty:'Nobody has access or wants it yet. Peop\
le who write to the agent on a channel with access = "pairing" get a code and show up here.',columns:[{title:"Person",cell:s=>n(g,{children:[s.name&&n(g,{children:[
n("strong",{children:n(S,{of:s.name})}),n("br",{})]}),n("span",{class:"aside",children:n(S,{of:s.person})})]})},{title:"State",cell:s=>n(J,{look:s.state==="asks"?
"warn":"good",children:tc[s.state]??s.state})},{title:"Linked with",cell:s=>s.linked?.map(i=>n("div",{children:n(S,{of:i})},i))},{title:"Code",cell:s=>s.code&&n(
"code",{children:s.code})},{title:"Since",cell:s=>n(T,{at:s.at})},{title:"Actions",cell:s=>n(y,{look:"danger",onPress:()=>r.ask(s),label:(s.state==="asks"?"Refu\
se ":"Revoke ")+nt(s),children:s.state==="asks"?"Refuse…":"Revoke…"})}]}),n(rc,{}),n(ic,{}),r.dialog]})}function nt(e){return h(e.name||e.person)}function nc({
admit:e,outcome:t}){let[o,r]=f(""),s=async()=>{await e(o.trim()),r("")};return n("form",{class:"filters",onSubmit:i=>{i.preventDefault(),o.trim()&&s().catch(t.fail)},
children:[n("label",{children:["Code that the person got from the agent",n("input",{value:o,autocomplete:"off",spellcheck:!1,onInput:i=>r(i.currentTarget.value)})]}),
n(y,{look:"main",disabled:!o.trim(),onPress:s,onError:t.fail,children:"Give access"})]})}var oc={owners:"owner",approvers:"approver",allow_from:"has access"};function rc(){
let e=O(t=>k(["config"],{},t),"");return n($,{title:"In the configuration",wide:!0,children:n(V,{read:e,rows:t=>t.settings.flatMap(sc),label:"People whom the co\
nfiguration names",id:t=>t.person+" "+t.role,empty:"The configuration names nobody.",columns:[{title:"Person",cell:t=>n(S,{of:t.person})},{title:"Role",cell:t=>n(
J,{look:"good",children:t.role})},{title:"From",cell:t=>n(S,{of:t.from})}]})})}function sc({key:e,value:t,from:o}){let[,r,s=""]=/^channels\.(.+)\.([a-z_]+)$/.exec(
e)??[],i=oc[s];return r&&i&&Array.isArray(t)?t.map(a=>({person:`${r}:${String(a)}`,role:i,from:o})):[]}function ic(){let e=O(t=>k(["chats"],{},t),"");return n($,
{title:"Chats",wide:!0,children:n(V,{read:e,rows:t=>t.chats,label:"Chats where people talked to the agent",id:t=>t.address+" "+t.session,empty:"Nobody has talke\
d to the agent yet.",columns:[{title:"Chat",cell:t=>n(g,{children:[t.name&&n(g,{children:[n("strong",{children:n(S,{of:t.name})}),n("br",{})]}),n("span",{class:"\
aside",children:n(S,{of:t.address})})]})},{title:"Kind",cell:t=>t.group?"group":"private"},{title:"Session",cell:t=>n(F,{of:t.session})},{title:"Since",cell:t=>n(
T,{at:t.since})},{title:"Messages",cell:t=>n(K,{of:t.address})}]})})}function rs(){let{value:e,error:t,again:o}=O(a=>k(["config"],{},a),"");if(t)return n(M,{error:t,again:o});let r=a=>lc(e?.settings.find(l=>l.key==="heartbeat."+a)?.
value),[s,i]=[r("every"),r("agent")];return s?n("p",{class:"aside heartbeat",children:["Heartbeat: every ",h(s),", ",n(S,{of:i})," goes through ",n(S,{of:r("fil\
e")})," and tells ",n(S,{of:r("to")}),". ",n(ac,{agent:i})]}):null}function ac({agent:e}){let t=N(r=>k(["sessions"],{agent:e,channel:"heartbeat",order:"desc",limit:5},
r),e,60,["turn_complete","turn_error"]),o=t.value?.sessions[0];return t.error?n(g,{children:"Couldn't load the last beat."}):t.value?o?n(g,{children:["Last beat\
: ",n(T,{at:o.updated}),", in ",n(F,{of:o.key})]}):n(g,{children:"No beat yet."}):n(g,{children:"Loading the last beat…"})}function lc(e){return Array.isArray(
e)?e.join(", "):typeof e=="string"?e:""}function Rn({of:e,done:t,close:o}){let[r,s]=f(""),[i,a]=f(""),[l,c]=f(e?.when??""),[d,u]=f(e?.time_zone??Intl.DateTimeFormat().resolvedOptions().timeZone),[v,p]=f(
e?.text??""),[m]=f(()=>crypto.randomUUID()),[b,w]=f(null),_=ce(),P=async()=>{w(null);let x={when:l.trim(),text:v.trim(),time_zone:d.trim()};e?await pt(["schedul\
es",e.id],cc(e,x)):await H(["schedules"],{...x,session:r.trim(),...i.trim()?{person:i.trim()}:{}},m),t()};return n($,{title:e?"Edit schedule":"New schedule",wide:!0,
box:_,children:n("form",{class:"editor",onSubmit:x=>{x.preventDefault(),P().catch(w)},children:[!e&&n(dc,{session:r,person:i,setSession:s,setPerson:a}),n("label",
{children:["When",n("input",{value:l,required:!0,placeholder:"0 9 * * *",spellcheck:!1,onInput:x=>c(x.currentTarget.value)}),n("span",{class:"aside",children:"F\
or example: in 2h, every 1d, 2030-01-31 09:00, or a cron expression"})]}),n("label",{children:["Time zone",n("input",{value:d,spellcheck:!1,onInput:x=>u(x.currentTarget.
value)})]}),n("label",{class:"long",children:["Message to the agent",n("textarea",{rows:3,required:!0,maxLength:4e3,value:v,onInput:x=>p(x.currentTarget.value)})]}),
n(M,{error:b}),n("div",{class:"after",children:[n(y,{look:"main",disabled:!l.trim()||!v.trim()||!e&&!r.trim(),onPress:P,onError:w,children:"Save"}),n(y,{onPress:o,
children:"Close"})]})]})})}function cc(e,t){let o={};return t.when!==e.when&&(o.when=t.when),t.text!==e.text&&(o.text=t.text),t.time_zone!==e.time_zone&&(o.time_zone=
t.time_zone),o}function dc({session:e,person:t,setSession:o,setPerson:r}){let s=O(i=>k(["chats"],{},i),"");return n(g,{children:[n("label",{children:["Session",
n("input",{value:e,required:!0,list:"sessions-known",placeholder:"main:telegram:42",spellcheck:!1,onInput:i=>o(i.currentTarget.value)}),n("datalist",{id:"sessio\
ns-known",children:s.value?.chats.map(i=>n("option",{value:i.session,children:i.name??i.address},i.session))})]}),n("label",{children:["On behalf of",n("input",
{value:t,placeholder:"telegram:42",spellcheck:!1,onInput:i=>r(i.currentTarget.value)})]})]})}var uc={done:"good",failed:"bad",running:"warn"};function ss({of:e,why:t,close:o}){let r=N(s=>k(["schedules",e.id],{limit:20},s),e.id,20,["turn_start","turn_com\
plete","turn_error"]);return n(Oe,{title:"Runs",close:o,children:n(V,{read:r,rows:s=>s.runs,label:`Turns that the schedule ${e.id} started, newest first`,id:s=>s.
id,empty:"No runs yet.",columns:[{title:"Started",cell:s=>n(T,{at:s.begun})},{title:"Due",cell:s=>s.due?n(T,{at:s.due}):"started manually"},{title:"State",cell:s=>n(
g,{children:[n(J,{look:uc[s.state],children:s.state})," ",s.code]})},{title:"Turn",cell:s=>t?n(K,{of:s.id}):n("code",{children:s.turn})}]})})}function is({me:e}){let t=Q(),[o,r]=f(null),s=N(c=>k(["schedules"],{limit:200},c),"",20,["turn_start","turn_complete"]),i=c=>{t.say(c),r(null),s.again()},a={pause:async c=>{
await pt(["schedules",c.id],{paused:!c.paused}),i(c.paused?"Schedule resumed.":"Schedule paused. It won't catch up on the runs that it misses.")},run:async c=>{
let{id:d}=await H(["schedules",c.id,"run"],{},crypto.randomUUID());i(`Running now as ${d}.`)}},l=oe(c=>({title:"Cancel this schedule?",confirm:"Cancel schedule",
text:n(g,{children:["The agent won't get “",h(c.text),"” anymore."]}),act:async()=>{await G(["schedules",c.id]),i("Schedule canceled.")}}));return n(B,{title:"\
Schedules",done:t,about:e.may.admin?"What the agent does later, once or regularly.":"What the agent does later for you, once or regularly. To change it, ask the\
 agent.",children:[e.may.admin&&o?.what!=="new"&&n("div",{class:"filters",children:n(y,{look:"main",onPress:()=>r({what:"new"}),children:"New schedule"})}),o?.what===
"new"&&n(Rn,{done:()=>i("Schedule created."),close:()=>r(null)}),e.may.admin&&n(rs,{}),n(L,{...s}),s.value&&n(mc,{schedules:s.value.schedules,mayChange:e.may.admin,
change:c=>r({what:"change",of:c}),runs:c=>r({what:"runs",of:c}),pause:a.pause,run:a.run,cancel:l.ask,fail:t.fail}),s.value?.next&&n("p",{class:"none after",children:"\
There are more schedules than these."}),o?.what==="change"&&n(Rn,{of:o.of,done:()=>i("Schedule saved."),close:()=>r(null)},o.of.id),o?.what==="runs"&&n(ss,{of:o.
of,why:e.may.admin,close:()=>r(null)},o.of.id),l.dialog]})}function mc({schedules:e,mayChange:t,change:o,runs:r,pause:s,run:i,cancel:a,fail:l}){return n(z,{label:"\
Schedules, next due first",rows:e,id:c=>c.id,empty:"Nothing is scheduled. Ask the agent to do something later, such as every morning"+(t?", or create a schedule\
 here.":"."),columns:[{title:"Next",cell:c=>c.next?n(T,{at:c.next}):n(J,{look:"warn",children:c.paused?"paused":"finished"})},{title:"When",cell:c=>n(g,{children:[
n("code",{children:h(c.when)}),n("br",{}),n("span",{class:"aside",children:c.time_zone})]})},{title:"Message",cell:c=>n("span",{class:"saying",children:h(c.text)})},
{title:"For",cell:c=>n(g,{children:[n(S,{of:c.person}),n("br",{}),n(F,{of:c.session})]})},{title:"Actions",cell:c=>n("div",{class:"rowactions",children:[t&&n(y,
{onPress:()=>i(c),onError:l,label:`Run now: ${c.id}`,children:"Run now"}),t&&n(y,{onPress:()=>s(c),onError:l,label:`${c.paused?"Resume":"Pause"}: ${c.id}`,children:c.
paused?"Resume":"Pause"}),t&&n(y,{onPress:()=>o(c),label:`Edit: ${c.id}`,children:"Edit"}),n(y,{onPress:()=>r(c),label:`Runs: ${c.id}`,children:"Runs"}),t&&n(y,
{look:"danger",onPress:()=>a(c),label:`Cancel: ${c.id}`,children:"Cancel…"})]})}]})}var as=500,pc=200,fc={debug:"Everything",info:"Info and above",warn:"Warnings and errors",error:"Errors"};function ls(){let[e,t]=f("info"),[o,r]=f(!1),s=bc(e,o);
return n(B,{title:"Log",about:"What the server that answers here writes about its work, without what people or models said. With several servers, each has its o\
wn log.",children:[n("div",{class:"filters",children:[n("label",{children:["Level",n("select",{value:e,onChange:i=>t(i.currentTarget.value),children:Object.entries(
fc).map(([i,a])=>n("option",{value:i,children:a},i))})]}),n(y,{onPress:()=>r(!o),children:o?"Follow":"Pause"}),n("span",{role:"status",class:"aside",children:o?
"Paused.":s.live?"Following.":s.why?"":"Connecting…"})]}),n(M,{error:s.why&&new Error(s.why)}),n(z,{label:"Lines of the log, newest first",rows:s.lines,id:i=>String(
i.id),empty:"No lines of this level yet.",columns:[{title:"Time",cell:i=>n(ht,{at:i.at})},{title:"Level",cell:i=>n(gc,{of:i.level})},{title:"Message",cell:i=>n(
"span",{class:"name",children:h(i.message)})},{title:"Details",cell:i=>n(hc,{of:i.fields})}]})]})}function gc({of:e}){return n(J,{look:e==="ERROR"?"bad":e==="WA\
RN"?"warn":void 0,children:e.toLowerCase()})}function hc({of:e}){let t=typeof e.turn=="string"?e.turn:void 0,o=Object.entries(e).filter(([,r])=>r!=="").map(([r,
s])=>r+"="+(typeof s=="string"?s:JSON.stringify(s)));return n(g,{children:[n("span",{class:"name aside",children:h(o.join(" "))})," ",n(K,{of:t})]})}function bc(e,t){
let[o,r]=f([]),[s,i]=f({live:!1,why:""}),a=A([]);return E(()=>{if(t)return;let l=new AbortController,c=!1,d,u=()=>{d=void 0;let[m,b]=[a.current.reverse(),c];a.current=
[],c=!1,r(w=>(b?m:[...m,...w]).slice(0,as))},p={event:(m,b)=>{m==="reset"?(c=!0,a.current=[]):m==="line"&&(a.current.push(b),a.current.length>as&&a.current.shift()),
d??=setTimeout(u,pc)},state:(m,b="")=>i({live:m==="live",why:b})};return Pt(ee(["logs","events"],{level:e}),p,l.signal),()=>{l.abort(),clearTimeout(d),a.current=
[],i({live:!1,why:""})}},[e,t]),{lines:o,...s}}function cs(e){return e.map(t=>t.map(vc).join(",")+`\r
`).join("")}function vc(e){if(typeof e=="number"||/^\d+(\.\d+)?$/.test(e))return String(e);let t=/^[=+\-@\t\r]/.test(e)?"'"+e:e;return/[",\r\n]/.test(t)?'"'+t.replaceAll(
'"','""')+'"':t}function ds(e,t){let o=URL.createObjectURL(new Blob([t],{type:"text/csv;charset=utf-8"})),r=document.createElement("a");r.href=o,r.download=e,r.
click(),setTimeout(()=>URL.revokeObjectURL(o),1e4)}var $n={day:"Day",model:"Model",person:"Person",agent:"Agent",session:"Session"};function Nn(){return ge(Date.now())}function us(){return Nn().slice(0,8)+"01"}function ps(){
let[e,t]=f(us),[o,r]=f(Nn),[s,i]=f("model"),a=e+" "+o,l=O(c=>k(["usage"],{by:"day",from:e,to:o},c),a);return n(B,{title:"Usage",about:"What models used and cost\
. Days are in UTC.",children:[n("form",{class:"filters",onSubmit:c=>c.preventDefault(),children:[n("label",{children:["From",n("input",{type:"date",value:e,max:o,
onChange:c=>t(c.currentTarget.value||us())})]}),n("label",{children:["To",n("input",{type:"date",value:o,min:e,onChange:c=>r(c.currentTarget.value||Nn())})]})]}),
n(L,{...l}),l.value&&n(g,{children:[n($,{title:"What's left now",children:n(zt,{caps:l.value.caps})}),n($,{title:"By day",wide:!0,children:[n(wc,{days:l.value.usage,
from:e,to:o}),n(fs,{by:"day",sums:l.value.usage,span:a})]}),n(yc,{by:s,choose:i,from:e,to:o}),n("p",{class:"aside",children:["Prices as of ",l.value.prices,"."]})]})]})}
function wc({days:e,from:t,to:o}){let r=e.some(p=>p.microdollars>0),s=r?te:p=>C(p)+" tokens",i=ft(t,o),a=i.map(p=>e.find(m=>m.key===p)),l=a.map(p=>p?r?p.microdollars:
ms(p):0),c=Math.max(0,...l);if(c===0)return null;let d=p=>{let m=a[p];return m?`${r?te(m.microdollars)+", ":""}${D(m.calls,"call")}, ${C(ms(m))} tokens`:"nothin\
g"},u=l.indexOf(c),v=`${r?"Cost":"Tokens"} per day from ${t} to ${o}. Highest: ${i[u]}: ${d(u)}. The table below lists all days.`;return n("div",{class:"plot",children:n(
Ln,{label:v,times:i,series:[{name:"",look:"c-main",values:l}],says:s,tells:d})})}var ms=e=>e.input+e.output;function yc({by:e,choose:t,from:o,to:r}){let s=o+" "+
r,i=O(a=>k(["usage"],{by:e,from:o,to:r},a).then(l=>({by:e,sums:l.usage})),e+" "+s);return n($,{title:"By "+e,wide:!0,children:[n("div",{class:"filters",children:n(
"label",{children:["Group by",n("select",{value:e,onChange:a=>t(a.currentTarget.value),children:Object.keys($n).filter(a=>a!=="day").map(a=>n("option",{value:a,
children:$n[a].toLowerCase()},a))})]})}),n(L,{...i}),i.value&&i.value.by===e&&n(fs,{by:e,sums:i.value.sums,span:s})]})}function kc(e,t){return e.unpriced===e.calls&&
e.calls>0?"unknown":t(e.microdollars)+(e.unpriced+e.estimated>0?" *":"")}function fs({by:e,sums:t,span:o}){let r=Co(t.map(c=>c.microdollars)),s=[{title:$n[e],cell:c=>h(
c.key||"(erased)")},{title:"Calls",cell:c=>C(c.calls),number:!0},{title:"Input",cell:c=>C(c.input),number:!0},{title:"Cached",cell:c=>C(c.cached),number:!0},{title:"\
Output",cell:c=>C(c.output),number:!0},{title:"Reasoning",cell:c=>C(c.reasoning),number:!0},{title:"Cost",cell:c=>kc(c,r),number:!0}],i=t.reduce((c,d)=>c+d.unpriced,
0),a=t.reduce((c,d)=>c+d.estimated,0),l=()=>ds(`parley-usage-by-${e}-${o.replace(" ","-to-")}.csv`,_c(e,t));return n(g,{children:[n(z,{label:`Usage by ${e}; inp\
ut, cached, output and reasoning are tokens`,columns:s,rows:t,id:c=>c.key,empty:"No model calls in this period."}),i>0&&n("p",{class:"aside",children:["* The co\
st of ",D(i,"call")," is unknown. See docs/models.md to set prices."]}),a>0&&n("p",{class:"aside",children:["* The tokens of ",D(a,"call")," are estimates, beca\
use the provider didn't count them."]}),t.length>0&&n("div",{class:"after",children:n(y,{onPress:l,label:`Download CSV: usage by ${e}`,children:"Download CSV"})})]})}
function _c(e,t){return cs([[e,"calls","input_tokens","cached_tokens","output_tokens","reasoning_tokens","dollars","calls_estimated","calls_unpriced"],...t.map(
r=>[r.key,r.calls,r.input,r.cached,r.output,r.reasoning,(r.microdollars/1e6).toFixed(6),r.estimated,r.unpriced])])}function gs({rest:e}){let t=e[0]??"";return n(B,{title:"Why",about:"What happened to a message: who let it in, what ran, what people were asked, and whether the\
 answer was sent. It never shows what anyone said.",children:[n(Sc,{id:t},t),t&&n(xc,{id:t})]})}function Sc({id:e}){let[t,o]=f(e),r=()=>Me("why",t.trim());return n(
"form",{class:"filters",onSubmit:s=>{s.preventDefault(),t.trim()&&r()},children:[n("label",{class:"long",children:["Message, session, chat or person",n("input",
{value:t,placeholder:"telegram:42",spellcheck:!1,onInput:s=>o(s.currentTarget.value)})]}),n(y,{look:"main",disabled:!t.trim(),onPress:r,children:"Show"})]})}function xc({
id:e}){let t=O(r=>k(["why",e],{},r).then(s=>({id:e,told:s})),e),o=t.value?.id===e?t.value.told:void 0;return n("div",{"aria-live":"polite",children:[n(L,{value:o,
error:t.error,again:t.again}),o&&o.about!=="message"&&o.messages.length>0&&n("p",{class:"aside",children:["Latest messages of the ",o.about," ",h(o.id),":"]}),o?.
messages.map(r=>n(Pc,{of:r},r.message)),o&&o.messages.length===0&&n("p",{class:"none",children:["No messages found for ",h(o.id),"."]}),o?.hints&&o.hints.length>
0&&n("ul",{class:"hints",children:o.hints.map((r,s)=>n("li",{children:n(wt,{text:r})},s))})]})}var Tc=new Set(["answered","done"]),Ec=new Set(["running","waitin\
g","waiting_for_people","sending"]);function Pc({of:e}){let t=Tc.has(e.outcome)?"good":Ec.has(e.outcome)?"warn":"bad",o="story-"+e.message;return n("article",{class:"\
story","aria-labelledby":o,children:[n("h2",{id:o,children:[n("span",{class:"name",children:h(e.message)})," ",n(J,{look:t,children:e.outcome.replaceAll("_"," ")})]}),
n("p",{class:"aside",children:[e.steps[0]?.at&&n(T,{at:e.steps[0].at}),e.session&&n(g,{children:[" in ",n(F,{of:e.session})]})]}),n("ol",{class:"steps",children:e.
steps.map((r,s)=>n("li",{children:[n("span",{class:"at",children:r.at&&n(ht,{at:r.at})})," ",n("span",{children:n(wt,{text:r.text})})]},s))}),n("p",{children:[n(
"strong",{children:n(wt,{text:e.says})})," ",e.outcome==="waiting_for_people"&&n("a",{href:X("approvals"),children:"See open requests"})]})]})}function hs(){return[{name:"chat",title:"Chat",group:"Conversations",may:e=>e.may.agent||e.may.own||e.may.read,show:Ar},{name:"approvals",title:"Approvals",group:"\
Conversations",may:e=>e.may.approve||e.may.agent,show:Lr,beside:Zr},{name:"people",title:"People",group:"Conversations",may:e=>e.may.admin,show:os},{name:"overv\
iew",title:"Overview",group:"Now",may:e=>e.may.read,show:ns},{name:"dead-letters",title:"Dead letters",group:"Now",may:e=>e.may.admin,show:Nr},{name:"schedules",
title:"Schedules",group:"Now",may:e=>e.may.admin||e.may.own,show:is},{name:"jobs",title:"Jobs",group:"Now",may:e=>e.may.read,show:Ur},{name:"agents",title:"Agen\
ts",group:"Setup",may:e=>e.may.read,show:Mr},{name:"mcp",title:"MCP servers",group:"Setup",may:e=>e.may.admin,show:jr},{name:"configuration",title:"Configuratio\
n",group:"Setup",may:e=>e.may.admin,show:$r},{name:"memory",title:"Memory",group:"Setup",may:e=>e.may.admin,show:Kr},{name:"browsers",title:"Browsers",group:"Se\
tup",may:()=>!0,show:Dr},{name:"usage",title:"Usage",group:"Records",may:e=>e.may.read,show:ps},{name:"audit",title:"Audit",group:"Records",may:e=>e.may.admin,show:Xr},
{name:"why",title:"Why",group:"Records",may:e=>e.may.admin,show:gs},{name:"doctor",title:"Doctor",group:"Records",may:e=>e.may.admin,show:Fr},{name:"log",title:"\
Log",group:"Records",may:e=>e.may.admin,show:ls}]}function bs(){let[e,t]=f({state:"asking"}),[o,r]=f(0);switch(E(()=>{go(()=>t(s=>s.state==="in"?{state:"out",error:new Error("You've been signed out. Sign in aga\
in.")}:s)),xo(So()).then(s=>t(s?{state:"in",me:s}:{state:"out"}),s=>t({state:"out",error:s}))},[o]),E(()=>{let s=()=>{location.hash.startsWith("#code=")&&r(i=>i+
1)};return addEventListener("hashchange",s),()=>removeEventListener("hashchange",s)},[]),e.state){case"asking":return n("main",{class:"signin",children:n(se,{})});case"\
out":return n(Eo,{error:e.error,onDone:s=>t({state:"in",me:s})},o);case"in":return n(Cc,{me:e.me,onSignOut:()=>t({state:"out"})})}}function Cc({me:e,onSignOut:t}){
let o=vo(),r=wo(),[s,i]=f(null),a=hs().filter(d=>d.may(e)),l=a.find(d=>d.name===o.view)??a[0],c=async()=>{await G(["sign-ins","current"]),t()};return E(()=>{document.
title=l?`${l.title} – Parley`:"Parley"},[l]),n("div",{class:"frame",children:[n("a",{class:"skip",href:"#content",onClick:d=>{d.preventDefault(),document.getElementById(
"content")?.focus()},children:"Skip to content"}),n("header",{class:"top",children:[n(yo,{menu:r}),n("strong",{class:"brand",children:"Parley"}),n("span",{class:"\
here","aria-hidden":"true",children:l?.title}),n("span",{class:"who",title:"You're signed in with this name",children:e.name}),n(y,{look:"quiet",onPress:c,onError:i,
children:"Sign out"})]}),n(M,{error:s}),n("div",{class:"below",children:[n(ko,{all:a,view:l,menu:r}),n("main",{id:"content",class:"content",tabIndex:-1,children:l?
n(In,{children:n(l.show,{me:e,rest:l.name===o.view?o.rest:[]})},l.name):n("p",{class:"empty",children:"Your token can't see anything here. It needs the agent, o\
wn or read scope."})})]})]})}var In=class extends ne{componentDidCatch(t){console.error(t),this.setState({error:t})}render(){return this.state.error?n(M,{error:this.
state.error,again:()=>this.setState({error:void 0})}):this.props.children}};var vs=document.getElementById("page");vs&&to(n(bs,{}),vs);
