var D,Gn,As,be,Zt,dt,Zn,at,Qn,en,Qt,Ms,Ue=Symbol.for("pv"),ut={},mt=[],Js=/^m(i|n|o|s|text|space)$/,tn=Array.isArray,eo=mt.slice,Te=Object.assign;function xe(e){
e&&e.parentNode&&e.remove()}function lt(e,t,n,r,s){var i={type:e,props:t,key:n,ref:r,__k:null,__:null,__b:0,__e:null,__c:null,constructor:Ue,__v:s||++Gn,__i:-1,__u:0};return!s&&D.vnode&&D.
vnode(i),i}function to(){return{current:null}}function g(e){return e.children}function ee(e,t){this.props=e,this.context=t,this.__g=0}function ve(e,t){if(t==null)
return e.__&&ve(e.__,e.__i+1);for(var n;t<e.__k.length;t++)if((n=e.__k[t])&&n.__e)return n.__e;return typeof e.type!="function"||e.props.__P?null:ve(e)}function Bs(e){
var t,n=e.__v,r=n.__e,s=[],i=[],a=e.__P;a&&((t=Te({constructor:Ue},n)).__v=n.__v+1,D.vnode&&D.vnode(t),nn(a,t,n,e.__n,a.namespaceURI,32&n.__u?[r]:null,s,r||ve(n),
32&n.__u,i),t.__v=n.__v,t.__.__k[t.__i]=t,ao(s,t,i),n.__=n.__e=null,t.__e!=r&&no(t))}function no(e){if((e=e.__)&&e.__c&&!e.props.__P)return e.__e=null,e.__k.some(
function(t){return t&&(e.__e=t.__e)}),no(e)}function Kn(e){(8&e.__g||(e.__g|=8,be.push(e),dt++))&&Zt==D.debounceRendering||((Zt=D.debounceRendering)||queueMicrotask)(
oo)}function oo(){try{for(var e,t=1;be.length;)be.length>t&&be.sort(Zn),e=be.shift(),t=be.length,8&e.__g&&Bs(e)}finally{(dt=be.length)&&(Zt||queueMicrotask)(oo)}}
function ro(e,t,n,r,s,i,a,l,c,d,u){var h,p,m,v,w,_,P=r.__k||mt,x=t.length;for(c=Os(n,t,P,c,x),h=0;h<x;h++)(m=n.__k[h])!=null&&(p=~m.__i&&P[m.__i]||ut,m.__i=h,_=
nn(e,m,p,s,i,a,l,c,d,u),v=m.__e,(p.ref!=m.ref||8&p.__u)&&(p.ref&&on(p.ref,null,m,p),m.ref&&u.push(m.ref,m.__c||v,m)),w=w||v,4&m.__u?(c=so(m,c,e,!p.__v),p.__e&&(p.
__e=null)):typeof m.type=="function"&&_!==void 0?c=_:v&&(c=v.nextSibling),m.__u&=-21);return n.__e=w,c}function Os(e,t,n,r,s){var i,a,l,c,d,u,h,p,m,v=n.length,w=v,
_=0,P=0,x=e.__k=Array(s);for(i=0;i<s;i++)(a=t[i])!=null&&typeof a!="boolean"&&typeof a!="function"?(typeof a!="object"||a.constructor===String?a=x[i]=lt(null,a):
tn(a)?a=x[i]=lt(g,{children:a}):a.constructor===Ue&&a.__b?a=x[i]=lt(a.type,a.props,a.key,a.ref,a.__v):x[i]=a,c=i+_,a.__=e,a.__b=e.__b+1,l=null,~(d=a.__i=Ls(a,n,
c,w))&&(w--,(l=n[d])&&(l.__u|=2)),l&&l.__v?(a.__u|=16,d==c-1?_--:d==c+1?_++:d!=c&&(d>c?_--:_++,P=1)):(~d||(s>v?_--:s<v&&_++),typeof a.type!="function"&&(a.__u|=
4))):x[i]=null;if(P){for(u=[],h=[],i=0;i<s;i++)if((a=x[i])&&16&a.__u){for(_=0,p=u.length;_<p;)u[m=_+p>>1]<a.__i?_=m+1:p=m;u[_]=a.__i,h[i]=_+1}for(_=u.length;i--;)
h[i]&&(h[i]==_?_--:x[i].__u|=4)}if(w)for(i=0;i<v;i++)!(l=n[i])||2&l.__u||(l.__e==r&&(r=ve(l)),rn(l,l));return r}function so(e,t,n,r){var s,i,a,l;if(typeof e.type==
"function"){if(e.props.__P)return t;if(s=e.__k)for(i=0;i<s.length;i++)s[i]&&(s[i].__=e,t=so(s[i],t,n,!1));return t}for(t&&!t.parentNode&&(t=ve(e))&&!t.parentNode&&
(t=null),a=e.__e,l=t;l&&l.nodeType==8;)l=l.nextSibling;for(a!=l&&(!r&&n.moveBefore&&a.parentNode?n.moveBefore(a,t):n.insertBefore(a,t||null)),t=a;(t=t&&t.nextSibling)&&
t.nodeType==8&&!t.data.startsWith("$s"););return t}function Ls(e,t,n,r){var s,i=e.key,a=e.type,l=t[n],c=l&&!(2&l.__u);if(l===null&&i==null||c&&i==l.key&&a==l.type)return n;if(r>(c?1:0)){for(s=n-1;s>=0;s--)if((l=
t[s])&&!(2&l.__u)&&i==l.key&&a==l.type)return s;for(s=n+1;s<t.length;s++)if((l=t[s])&&!(2&l.__u)&&i==l.key&&a==l.type)return s}return-1}function Yn(e,t,n){n==null&&
(n=""),t[0]=="-"?e.setProperty(t,n):e[t]=n}function it(e,t,n,r,s){var i,a;if(t=="style")if(typeof n=="string")e.style.cssText=n;else{if(typeof r=="string"&&(e.style.
cssText=r=""),r)for(t in r)n&&t in n||Yn(e.style,t);if(n)for(t in n)r&&n[t]==r[t]||Yn(e.style,t,n[t])}else if(t[0]=="o"&&t[1]=="n")typeof n!="function"&&(n=null),
typeof r!="function"&&(r=null),(e.__e||(e.__e={}))[t]=n,n&&r||(a=Qt[t]||(Qt[t]=Xs(t)),(e.__a||(e.__a={}))[t]=en,i=t!=(t=t.replace(Qn,"$1")),(t=t.slice(2))[0]<"a"&&
(t=t.toLowerCase()),n?e.addEventListener(t,a,i):e.removeEventListener(t,a,i));else{if(s=="http://www.w3.org/2000/svg")t=t.replace(/xlink(H|:h)/,"h").replace(/sName$/,
"s");else if(t!="width"&&t!="height"&&t!="href"&&t!="list"&&t!="form"&&t!="tabIndex"&&t!="download"&&t!="rowSpan"&&t!="colSpan"&&t!="role"&&t!="popover"&&t in e)
try{return void(e[t]=n??"")}catch{}if(typeof n=="function")return;n==null||n===!1&&t[4]!="-"?e.removeAttribute(t):e.setAttribute(t,t=="popover"&&n==1?"":n)}}function Xs(e){
return function(t){var n=this.__e;if(n){if(n=n[e],t[at]==null)t[at]=en++;else if(t[at]<this.__a[e])return;return n(D.event?D.event(t):t)}}}function nn(e,t,n,r,s,i,a,l,c,d){
var u,h,p,m,v,w,_,P,x,U,I,Ae,jn,st,_e,Vn,he,Se,me=t.type;if(t.constructor!==Ue)return null;128&n.__u&&(c=32&n.__u,u=n.__c.__z)&&(t.__u|=c,h=i=[],u.nodeType==8?l=
ct(u,i):i.push(u),l=i[0]||l),(u=D.__b)&&u(t);e:if(typeof me=="function"){p=a.length;try{if(P=t.props,x=(u=me.prototype)&&u.render,U=(u=me.contextType)&&r[u.__c],
I=u?U?U.props.value:u.__:r,(m=n.__c)?(t.__c=m,2&m.__g&&(m.__g|=1)):(x?t.__c=m=new me(P,I):(t.__c=m=new ee(P,I),m.constructor=me,m.render=Ds),U&&U.sub(m),m.state||
(m.state={}),m.__n=r,m.__g|=8,m.__h=[],m.__k=[]),x&&(m.__s||(m.__s=m.state),me.getDerivedStateFromProps&&(m.__s==m.state&&(m.__s=Te({},m.__s)),Te(m.__s,me.getDerivedStateFromProps(
P,m.__s)))),v=m.props,w=m.state,m.__v=t,n.__c){if(P!==v&&x&&!me.getDerivedStateFromProps&&m.componentWillReceiveProps&&m.componentWillReceiveProps(P,I),t.__v==n.
__v&&!(8&m.__g)||!(4&m.__g)&&m.shouldComponentUpdate&&m.shouldComponentUpdate(P,m.__s,I)===!1){t.__v!=n.__v&&(m.props=P,m.state=m.__s,m.__g&=-9),t.__e=n.__e,t.__k=
n.__k,t.__k.some(function(le){le&&(le.__=t)}),mt.push.apply(m.__h,m.__k),m.__k=[],m.__h.length&&a.push(m),l=ve(n);break e}m.componentWillUpdate&&m.componentWillUpdate(
P,m.__s,I),x&&m.componentDidUpdate&&m.__h.push(function(){m.componentDidUpdate(v,w,_)})}else x&&!me.getDerivedStateFromProps&&m.componentWillMount&&m.componentWillMount(),
x&&m.componentDidMount&&m.__h.push(m.componentDidMount);m.context=I,m.props=P,m.__P=e,m.__g&=-5,Ae=D.__r,jn=x?25:0;do m.__g&=-9,Ae&&Ae(t),u=m.render(m.props,m.state=
m.__s,m.context);while(8&m.__g&&++jn<25);x&&(mt.push.apply(m.__h,m.__k),m.__k=[]),m.state=m.__s,m.getChildContext&&(r=Te({},r,m.getChildContext())),x&&n.__c&&m.
getSnapshotBeforeUpdate&&(_=m.getSnapshotBeforeUpdate(v,w)),st=u&&u.type===g&&u.key==null?u.props.children:u,P.__P&&(u=l,s=(e=P.__P).namespaceURI,c=i=null,n.props&&
n.props.__P!=e&&(n.__k.some(function(le){le&&rn(le,le)}),n.__k=null),l=n.__k?ve(n,0):null),l=ro(e,tn(st)?st:[st],t,n,r,s,i,a,l,c,d),P.__P&&(t.__e=null,l=u),t.__u&=
-161,h&&h.some(xe),m.__h.length&&a.push(m),1&m.__g&&(m.__g&=-4)}catch(le){if(a.length=p,t.__v=null,c||i)if(le&&le.then){if(t.__u|=128|c,i){for(~(he=i.indexOf(l||
void 0))||(he=i.length);(Se=i[he-1])&&Se.nodeType==8;)he--;for(;he<i.length;he++)if(Se=i[he])if(i[he]=null,_e){if(Se==Vn)break}else{if(Se.nodeType!=8)break;Se.data.
startsWith("$s")&&(Vn=ct(_e=Se))}}if(!_e){for(;l&&l.nodeType==8&&l.nextSibling;)l=l.nextSibling;_e=l}(u=ct(_e=t.__c.__z||(t.__c.__z=_e)))?(t.__e=_e,l=u):t.__e=l,
l=l&&l.nextSibling}else i&&i.some(xe);else t.__e=n.__e;t.__k||(t.__k=n.__k||[]),le&&le.then||io(t),D.__e(le,t,n)}}else l=t.__e=$s(n.__e,t,n,r,s,i,a,c,d,e);return(u=
D.diffed)&&u(t),l}function ct(e,t){if(e&&e.nodeType==8&&e.data.startsWith("$s"))for(var n=1;e=e.nextSibling;){if(e.nodeType==8){if(e.data.startsWith("$s"))n++;else if(e.
data.startsWith("/$s")&&!--n)return e}t&&t.push(e)}}function io(e){e&&(e.__c&&(e.__c.__g|=4),e.__k&&e.__k.some(io))}function ao(e,t,n){for(var r=0;r<n.length;)on(
n[r++],n[r++],n[r++]);D.__c&&D.__c(t,e),e.some(function(s){try{e=s.__h,s.__h=[],e.some(function(i){i.call(s)})}catch(i){D.__e(i,s.__v)}})}function $s(e,t,n,r,s,i,a,l,c,d){
var u,h,p,m,v,w,_,P,x=n.props||ut,U=t.props,I=t.type;if(I=="svg"?s="http://www.w3.org/2000/svg":I=="math"?s="http://www.w3.org/1998/Math/MathML":s||(s="http://w\
ww.w3.org/1999/xhtml"),i){for(u=0;u<i.length;u++)if((v=i[u])&&(I?v.localName==I:v.nodeType==3)){e=v,i[u]=null;break}}if(!e){if(P=d.ownerDocument||document,!I)return P.
createTextNode(U);e=P.createElementNS(s,I,U.is?U:d),l&&(D.__m&&D.__m(t,i),l=!1),i=null}if(I){if(d=I=="template"&&e.content||e,i=I=="textarea"&&U.defaultValue!=null?
null:i&&eo.call(d.childNodes),!l&&i)for(x={},u=0;u<e.attributes.length;u++)x[(v=e.attributes[u]).name]=v.value;for(u in x)v=x[u],u=="dangerouslySetInnerHTML"?p=
v:u=="children"||u in U||u=="value"&&"defaultValue"in U||u=="checked"&&"defaultChecked"in U||it(e,u,null,v,s);for(u in U)v=U[u],u=="children"?m=v:u=="dangerousl\
ySetInnerHTML"?h=v:u=="value"?w=v:u=="checked"?_=v:l&&typeof v!="function"||x[u]===v||it(e,u,v,x[u],s);h?(l||p&&(h.__html==p.__html||h.__html==e.innerHTML)||(e.
innerHTML=h.__html),t.__k=[]):(p&&(e.textContent=""),(I=="foreignObject"||s=="http://www.w3.org/1998/Math/MathML"&&Js.test(I))&&(s="http://www.w3.org/1999/xhtml"),
ro(d,tn(m)?m:[m],t,n,r,s,i,a,i?i[0]:n.__k&&ve(n,0),l,c),i&&i.some(xe)),l&&I!="textarea"||(u="value",I=="progress"&&w==null?e.removeAttribute(u):w==null||w===e[u]&&
(I!="progress"||w)||it(e,u,w,x[u],s),u="checked",_!=null&&_!=e[u]&&it(e,u,_,x[u],s))}else x===U||l&&e.data==U||(e.data=U);return e}function on(e,t,n,r){try{typeof e==
"function"?t?t.__x=e(t)||1:r&&(r=r.__c||r.__e)&&(t=r.__x)&&(r.__x=null,typeof t=="function"?t():e(null)):e.current=t}catch(s){D.__e(s,n)}}function rn(e,t,n){var r,
s,i,a;if(D.unmount&&D.unmount(e),!(r=e.ref)||r.current&&r.current!=e.__e||on(r,null,t,e),r=e.__c){if(r.componentWillUnmount)try{r.componentWillUnmount()}catch(l){
D.__e(l,t)}r.__P=r.__n=null}if(r=e.__k)for(a=0;a<r.length;a++)r[a]&&rn(r[a],t,typeof e.type!="function"||n&&!e.props.__P);!n&&(r=e.__c)&&(r=r.__z)&&(s=ct(r,i=[]))&&
(r==e.__e&&i.some(xe),xe(s),xe(r)),n||xe(e.__e),e.__e=e.__c=e.__=null}function Ds(e,t,n){return this.constructor(e,n)}function lo(e,t){var n,r,s,i;D.__&&D.__(e,
t),t.nodeType==9&&(t=t.documentElement),r=(n=e&&32&e.__u)?null:t.__k,t.__k=lt(g,{children:[e]}),s=[],i=[],nn(t,t.__k,r||ut,ut,t.namespaceURI,r?null:t.firstChild?
eo.call(t.childNodes):null,s,r?r.__e:t.firstChild,n,i),ao(s,t.__k,i),t.__k.props.children=null}D={__e:function(e,t,n,r){for(var s,i,a;t=t.__;)if((s=t.__c)&&!(1&s.__g)){s.__g|=4;try{if((a=(i=s.constructor)&&i.getDerivedStateFromError)&&s.setState(i.getDerivedStateFromError(
e)),s.componentDidCatch&&(s.componentDidCatch(e,r||{}),a=1),a&&8&s.__g)return void(s.__g|=2)}catch(l){e=l}}throw dt=0,e}},Gn=0,As=function(e){return e!=null&&e.
constructor===Ue},ee.prototype.setState=function(e,t){var n=this.__s;n&&n!=this.state||(n=this.__s=Te({},this.state)),typeof e=="function"&&(e=e(Te({},n),this.props)),
e&&(Te(n,e),this.__v&&(t&&this.__k.push(t),Kn(this)))},ee.prototype.forceUpdate=function(e){this.__v&&(this.__g|=4,e&&this.__h.push(e),Kn(this))},ee.prototype.render=
g,be=[],dt=0,Zn=function(e,t){return e.__v.__b-t.__v.__b},at=Symbol(),Qn=/(PointerCapture)$|Capture$/i,en=0,Qt={},Ms=0;var Me,q,sn,co,an=Object.is,pt=0,wo=[],ln=[],W=D,uo=W.__b,mo=W.__r,po=W.diffed,fo=W.__c,go=W.unmount,ho=W.__;function ft(e,t){W.__h&&W.__h(q,e,pt||t),pt=0;var n=q.
__H||(q.__H={__:[],__h:[]});return e>=n.__.length&&n.__.push({}),n.__[e]}function f(e){return pt=1,Rs(yo,e)}function Rs(e,t,n){var r=ft(Me++,2);if(r.t=e,!r.__c&&
(r.__=[n?n(t):yo(void 0,t),function(i){var a=(r.__N||r.__)[0],l=r.t(a,i);an(a,l)||(r.__N=[l,r.__[1]],r.__c.setState({}))}],r.__c=q,!q.__f)){q.__f=!0;var s=q.shouldComponentUpdate;
q.shouldComponentUpdate=function(i,a,l){var c=this.__H;if(!c)return!0;var d=!1,u=this.props!=i;if(c.__.some(function(p){p.__N&&(d=!0,an(p.__[0],p.__N[0])||(u=!0))}),
s){var h=s.call(this,i,a,l);return d?h||u:h}return!d||u}}return r.__}function E(e,t){var n=ft(Me++,3);!W.__s&&dn(n.__H,t)&&(n.__P=!0,n.__=e,n.u=t,q.__H.__h.push(
n))}function pe(e,t){var n=ft(Me++,4);!W.__s&&dn(n.__H,t)&&(n.__P=!1,n.__=e,n.u=t,q.__h.push(n))}function A(e){return pt=5,Ns(function(){return{current:e}},[])}function Ns(e,t){var n=ft(Me++,7);return dn(n.__H,t)&&(n.__=e(),n.__H=t),n.__}function Is(){var e;do{for(;e=ln.shift();)try{We(e)}catch(n){W.__e(n,{__:(e=e.__P)&&e.__v})}for(;e=wo.shift();){var t=e.__H;if(e.__P&&t)try{t.__h.some(We),t.__h.
some(cn),t.__h=[]}catch(n){t.__h=[],W.__e(n,e.__v)}}}while(ln.length)}W.__b=function(e){q=null,uo&&uo(e)},W.__=function(e,t){e&&t.__k&&t.__k.__m&&(e.__m=t.__k.__m),
ho&&ho(e,t)},W.__r=function(e){mo&&mo(e),Me=0;var t=(q=e.__c).__H;t&&(sn==q?q.__h=[]:(t.__h.some(We),t.__h.some(cn),Me=0),t.__h=[],t.__.some(function(n){n.__N&&
(n.__=n.__N),n.u=n.__N=void 0})),sn=q},W.diffed=function(e){po&&po(e);var t=e.__c;t&&t.__H&&(t.__H.__h.length&&vo(wo.push(t)),t.__H.__.some(function(n){n.u&&(n.
__H=n.u)})),sn=q=null},W.__c=function(e,t){t.some(function(n){try{n.__h.some(We),n.__h=n.__h.filter(function(r){return!r.__||cn(r)})}catch(r){n.__h=[function(){
throw r}]}}),fo&&fo(e,t)},W.unmount=function(e){go&&go(e);var t,n,r=e.__c;r&&r.__H&&(r.__H.__.some(function(s){try{if(s.__P&&s.__c){if(n===void 0){for(n=e.__;n&&
(!n.__c||!n.__c.__P);)n=n.__;n=n&&n.__c}s.__P=n,vo(ln.push(s))}else We(s)}catch(i){t=i}}),r.__H=void 0,t&&W.__e(t,r.__v))};var bo=typeof requestAnimationFrame==
"function";function Fs(e){var t,n=function(){clearTimeout(r),bo&&cancelAnimationFrame(t),setTimeout(e)},r=setTimeout(n,35);bo&&(t=requestAnimationFrame(n))}function vo(e){
e!=1&&co==W.requestAnimationFrame||((co=W.requestAnimationFrame)||Fs)(Is)}function We(e){var t=q,n=e.__c;typeof n=="function"&&(e.__c=void 0,n()),q=t}function cn(e){
var t=q;e.__c=e.__(),q=t}function dn(e,t){return!e||e.length!=t.length||t.some(function(n,r){return!an(n,e[r])})}function yo(e,t){return typeof t=="function"?t(
e):t}var Y=class extends Error{constructor(n,r,s,i=0){super(s);this.status=n;this.code=r;this.retryAfter=i}status;code;retryAfter},ko=()=>{};function _o(e){ko=e}function te(e,t={}){
let n=new URLSearchParams;for(let[s,i]of Object.entries(t))i!==void 0&&i!==""&&n.set(s,String(i));let r="/v1/"+e.map(encodeURIComponent).join("/");return n.size>
0?r+"?"+n.toString():r}function k(e,t={},n){return He("GET",te(e,t),void 0,{},n)}function H(e,t={},n){return He("POST",te(e),t,n?{"Idempotency-Key":n}:{})}function gt(e,t){
return He("PATCH",te(e),t)}function G(e,t){return He("DELETE",te(e),void 0,t?{"If-Match":`"${t}"`}:{})}function So(e,t,n){return He("PUT",te(e),t,{"If-Match":`"${n}\
"`})}async function He(e,t,n,r={},s){let i={...r};e!=="GET"&&(i["Parley-Page"]="1"),n!==void 0&&(i["Content-Type"]="application/json");let a={method:e,headers:i,
credentials:"same-origin",redirect:"error"};n!==void 0&&(a.body=JSON.stringify(n)),s&&(a.signal=s);let l=await qe(t,a);if(!l.ok)throw await Ee(l);let c=await l.
text();return c?JSON.parse(c):void 0}async function qe(e,t){try{return await fetch(e,{cache:"no-store",...t})}catch(n){throw t.signal?.aborted?n:new Y(0,"unreac\
hable","Can't reach the server. Check that parley serve is running.")}}async function Ee(e){let t="http_"+e.status,n=`The server responded with status ${e.status}\
.`;try{let r=await e.json();t=r.error?.code||t,n=r.error?.message||n}catch{}return e.status===401&&ko(),new Y(e.status,t,n,Number(e.headers.get("Retry-After"))||
0)}function Je(e){let t=e instanceof Error?e.message:String(e);return t.charAt(0).toUpperCase()+t.slice(1)}function xo(e){let[t="",...n]=e.replace(/^#?\/?/,"").split("/");try{return{view:decodeURIComponent(t),rest:n.map(decodeURIComponent)}}catch{return{view:"",rest:[]}}}
function X(e,...t){return"#/"+[e,...t].map(encodeURIComponent).join("/")}function Be(e,...t){location.hash=X(e,...t)}function To(){let[e,t]=f(()=>xo(location.hash));
return pe(()=>{let n=()=>t(xo(location.hash));return addEventListener("hashchange",n),()=>removeEventListener("hashchange",n)},[]),e}var Us=Symbol.for("pv"),Ws=0;function o(e,t,n,r,s,i){t||(t={});var a,l,c=t;if("ref"in c&&typeof e!="function")for(l in c={},t)l=="ref"?a=t[l]:c[l]=t[l];var d={type:e,props:c,key:n,ref:a,__k:null,
__:null,__b:0,__e:null,__c:null,constructor:Us,__v:--Ws,__i:-1,__u:0};return(s||i)&&(d.__source=s,d.__self=i),D.vnode&&D.vnode(d),d}function Eo(){let[e,t]=f(!1),[n,r]=f(0),s=()=>t(!1);return E(()=>{if(!e)return;let i=l=>{l.target instanceof Element&&!l.target.closest("#views, .top")&&s()},a=l=>{
l.key==="Escape"&&(s(),document.querySelector(".menu-button")?.focus())};return addEventListener("pointerdown",i),addEventListener("focusin",i),addEventListener(
"keydown",a),()=>{removeEventListener("pointerdown",i),removeEventListener("focusin",i),removeEventListener("keydown",a)}},[e]),{open:e,waiting:n,toggle:()=>t(!e),
close:s,tell:r}}function Po({menu:e}){return o("button",{type:"button",class:"button quiet menu-button","aria-expanded":e.open,"aria-controls":"views",onClick:e.
toggle,children:[o("svg",{class:"icon",viewBox:"0 0 24 24","aria-hidden":"true",focusable:"false",children:o("path",{d:"M4 6h16M4 12h16M4 18h16"})}),"Menu",e.waiting>
0&&!e.open&&o("span",{class:"badge warn",children:[e.waiting,o("span",{class:"away",children:" open requests"})]})]})}function Hs(e){let t=new Map;for(let n of e)
t.set(n.group,[...t.get(n.group)??[],n]);return[...t]}function Co({all:e,view:t,menu:n}){let r=A(null);E(()=>{r.current?.querySelector("[aria-current]")?.scrollIntoView(
{block:"nearest"})},[t]);let s=()=>{n.open&&(n.close(),document.getElementById("content")?.focus())};return o("nav",{ref:r,id:"views",class:"views"+(n.open?" op\
en":""),"aria-label":"Views",children:Hs(e).map(([i,a])=>{let l="views-"+i.toLowerCase();return o("div",{class:"views-group",children:[o("span",{id:l,class:"vie\
ws-title",children:i}),o("ul",{"aria-labelledby":l,children:a.map(c=>o("li",{children:o("a",{href:X(c.name),"aria-current":c===t?"page":void 0,onClick:s,children:[
c.title,c.beside&&o(c.beside,{tell:n.tell})]})},c.name))})]},i)})})}function y({children:e,onPress:t,look:n,disabled:r,label:s,onError:i}){let[a,l]=f(!1),c=async()=>{try{let d=t();if(!(d instanceof Promise))return;l(!0),await d}catch(d){
if(!i)throw d;i(d)}finally{l(!1)}};return o("button",{type:"button",class:"button "+(n??""),disabled:r||a,"aria-label":s,"aria-busy":a,onClick:()=>{c()},children:e})}
function J({error:e,again:t}){return e?o("div",{class:"note error",role:"alert",children:[o("span",{children:Je(e)}),t&&o(y,{look:"quiet",onPress:t,children:"Tr\
y again"})]}):null}function re({children:e}){return o("p",{class:"empty",children:e})}function se(){return o("p",{class:"empty",role:"status",children:"Loading…"})}
function z({label:e,columns:t,rows:n,id:r,empty:s}){return n.length===0?o(re,{children:s}):o("div",{class:"table",tabIndex:0,role:"region","aria-label":e,children:o(
"table",{children:[o("caption",{class:"away",children:e}),o("thead",{children:o("tr",{children:t.map(i=>o("th",{scope:"col",class:i.number?"number":"",children:i.
title},i.title))})}),o("tbody",{children:n.map(i=>o("tr",{children:t.map(a=>o("td",{class:a.number?"number":"","data-title":a.title,children:a.cell(i)},a.title))},
r(i)))})]})})}function K({of:e}){return e?o("a",{href:X("why",e),"aria-label":"Why? "+e,children:"Why?"}):null}function Ao({label:e,children:t}){let n=A(null),r=()=>{
n.current&&(n.current.open=!1)};return E(()=>{let s=i=>{i.target instanceof Node&&!n.current?.contains(i.target)&&r()};return addEventListener("pointerdown",s),
()=>removeEventListener("pointerdown",s)},[]),o("details",{ref:n,class:"menu",onKeyDown:s=>{s.key!=="Escape"||!n.current?.open||(r(),n.current.querySelector("su\
mmary")?.focus())},children:[o("summary",{class:"button quiet","aria-label":e,title:e,children:"⋯"}),o("div",{class:"menu-items",onClick:r,children:t})]})}function fe({
title:e,children:t,confirm:n,danger:r,onConfirm:s,onClose:i}){let a=A(null),l=A(!1),[c,d]=f(null);return pe(()=>{let h=a.current;return h?.showModal(),()=>{l.current=
!0,h?.close()}},[]),o("dialog",{ref:a,class:"dialog","aria-labelledby":"dialog-title",onClose:()=>l.current||i(),children:[o("h2",{id:"dialog-title",children:e}),
o("div",{children:t}),o(J,{error:c}),o("div",{class:"actions",children:[o(y,{onPress:i,children:"Cancel"}),o(y,{look:r?"danger":"main",onPress:async()=>{await s(),
i()},onError:d,children:n})]})]})}function ce(){let e=A(null);return pe(()=>{let t=document.activeElement;return e.current?.scrollIntoView({block:"start"}),e.current?.
focus({preventScroll:!0}),()=>{t instanceof HTMLElement&&e.current?.contains(document.activeElement)&&t.focus()}},[]),e}function B(e,t){let[n,r]=f({}),[s,i]=f(0);
return E(()=>{let a=new AbortController;return e(a.signal).then(l=>a.signal.aborted||r({value:l}),l=>a.signal.aborted||r(c=>({...c,error:l}))),()=>a.abort()},[t,
s]),{...n,again:()=>i(a=>a+1)}}function Mo(){let e=/^#code=([^&]+)$/.exec(location.hash);return e?.[1]?(history.replaceState(null,"",location.pathname),decodeURIComponent(e[1])):""}async function Jo(e){
if(e)return Bo({code:e});try{return await k(["me"])}catch(t){if(t instanceof Y&&(t.status===401||t.status===404))return null;throw t}}function Bo(e){return H(["\
sign-ins"],e)}function qs(e){let t=/(?:#code=|^)([A-Z2-7]{26})$/.exec(e)?.[1];return t?{code:t}:{token:e}}function Oo({error:e,onDone:t}){let[n,r]=f(""),[s,i]=f(
e),a=async()=>{let l=n.trim();l&&(i(null),t(await Bo(qs(l))))};return o("main",{class:"signin",children:[o("h1",{children:"Parley"}),o("p",{children:["Run ",o("\
code",{children:"parley ui"})," on the server. It opens this page and signs you in."]}),o(J,{error:s}),o("form",{onSubmit:l=>{l.preventDefault(),a().catch(i)},children:[
o("label",{for:"given",children:"Or paste the link that it prints, or a token"}),o("input",{id:"given",type:"password",autocomplete:"off",value:n,onInput:l=>r(l.
currentTarget.value)}),o(y,{look:"main",disabled:!n.trim(),onPress:a,onError:i,children:"Sign in"})]})]})}var Lo="en-US";function C(e){return e.toLocaleString(Lo)}function $(e,t){return C(e)+" "+ze(e,t)}function ze(e,t){return e===1?t:t+"s"}function ne(e){return e===
0?"$0":Math.abs(e)<1e4?"$"+(e/1e6).toFixed(6).replace(/0+$/,""):mn(e,2)}function je(e){return Math.abs(e)<1e4||e%1e4===0?ne(e):mn(e,4)}function Xo(e){let t=2;for(let n of e)
n>0&&n<100?t=6:n>0&&n<1e4&&(t=Math.max(t,4));return n=>mn(n,t)}function mn(e,t){return"$"+(e/1e6).toLocaleString(Lo,{minimumFractionDigits:t,maximumFractionDigits:t})}
function j(e){return e<1024?$(e,"byte"):e<1<<20?(e/1024).toFixed(1)+" KB":(e/(1<<20)).toFixed(1)+" MB"}function Z(e){if(e<1e3)return Math.max(0,Math.round(e))+"\
 ms";let t=Math.round(e/1e3);return t<60?t+" s":t<3600?un(t,60,"min",1,"s"):t<86400?un(t,3600,"h",60,"min"):un(t,86400,"d",3600,"h")}function un(e,t,n,r,s){let i=Math.
floor(e%t/r);return Math.floor(e/t)+" "+n+(i>0?` ${i} ${s}`:"")}var zs=366;function pn(e,t,n){let r=[];for(let s=e;s<=t&&r.length<zs;s+=n)r.push(s);return r}function ge(e){
return new Date(e).toISOString().slice(0,10)}function ht(e,t){return pn(Date.parse(e),Date.parse(t),864e5).map(ge)}var $o=10,js=10<<20;function Do(e){let t=new Date,n=i=>String(i).padStart(2,"0"),s=`${`${t.getFullYear()}-${n(t.getMonth()+1)}-${n(t.getDate())}`}-${n(t.getHours())}${n(
t.getMinutes())}-${crypto.randomUUID().slice(0,4)}`;return["main","web",e.name,s].map(encodeURIComponent).join(":")}function Ve(e,t,n){return{key:Ro(),session:e,
text:t,files:n,state:"sending",id:"",problem:""}}var Ro=()=>"page-"+crypto.randomUUID(),Vs=5;async function No(e,t){e.state="sending",e.problem="",t();let n=e.files.
map(s=>({name:s.name,data:s.data})),r={to:"agent",session:e.session,text:e.text,...n.length>0&&{files:n}};for(let s=1;;s++)try{let i=await H(["messages"],e.operator?
{session:e.session,as:"operator",text:e.text}:Ys(r),e.key);e.id=i.id,e.state="sent",t();return}catch(i){let a=i instanceof Y?i:new Y(0,"broken",String(i));if(!(a.
status===0||a.status===429||a.status>=500)||s===Vs){e.state="refused",e.problem=a.message,t();return}await new Promise(c=>setTimeout(c,Math.min(Math.max(a.retryAfter*
1e3,400*2**s),8e3)))}}var Io=1500,Ks=12;async function Fo(e,t,n,r){for(let s=0;s<Ks&&e.state==="sent";s++){if(await new Promise(i=>setTimeout(i,Math.min(Io*1.5**
s,3e4))),r.aborted||n())return;try{let{destinations:i}=await k(["messages",e.id],{},r),a=i.find(l=>l.state==="failed");if(!a)continue;Object.assign(e,{state:"re\
fused",problem:a.error?.message??"It couldn't be delivered.",id:"",key:Ro()}),t()}catch{}}}var Uo=e=>!e.operator&&/^\s*\/[a-z]/i.test(e.text);async function Wo(e,t,n,r){
for(let s=0;e.state==="sent";s++){if(await new Promise(i=>setTimeout(i,Math.min(Io*1.5**s,3e4))),r.aborted||n())return;try{let{destinations:i}=await k(["message\
s",e.id],{},r);if(!i.some(a=>a.state==="sent"))continue;e.state="done",t()}catch(i){if(i instanceof Y&&i.status===404)return}}}function Ys(e){let[t="",n]=e.session.
split(":");return n&&t!=="main"?{...e,to:"agent:"+decodeURIComponent(t)}:e}function ie(e){let[t="",n="",r="",s=""]=e.split(":").map(i=>{try{return decodeURIComponent(
i)}catch{return i}});return{agent:t,channel:n,chat:r,thread:s}}function we(e){let{channel:t,chat:n,thread:r}=ie(e);return t==="web"?r||"First session":[n,r].filter(
Boolean).join(" / ")||e}function Ho(e,t){if(!t.may.agent)return!1;let{channel:n,chat:r}=ie(e);return n==="web"&&r===t.name||n==="console"&&t.owner}function qo(e,t){
return t.may.admin&&!["","web","console","agent","webhook","heartbeat"].includes(ie(e).channel)}var fn={get:e=>sessionStorage.getItem("draft "+e)??"",set:(e,t)=>{
t.trim()?sessionStorage.setItem("draft "+e,t):sessionStorage.removeItem("draft "+e)}},Ke={get:e=>{try{return JSON.parse(sessionStorage.getItem("outbox "+e)??"[]").
map(n=>({...n,files:[],state:"sending",id:"",problem:""}))}catch{return[]}},set:(e,t)=>{let n=t.filter(r=>r.state==="sending"&&r.files.length===0).map(({key:r,session:s,
text:i,operator:a})=>({key:r,session:s,text:i,...a&&{operator:a}}));n.length>0?sessionStorage.setItem("outbox "+e,JSON.stringify(n)):sessionStorage.removeItem("\
outbox "+e)}};async function zo(e,t){let n=[...t];for(let r of e){if(n.length===$o)throw new Error(`You can attach up to ${$o} files to a message.`);if(n.reduce(
(l,c)=>l+c.size,r.size)>js)throw new Error("The files are too large. You can attach up to 10 MB to a message.");if(r.size===0)throw new Error(`The file ${r.name}\
 is empty.`);let i=await Zs(r),a={name:Gs(r.name,n.length),size:r.size,data:i};/^image\/(png|jpeg|gif|webp)$/.test(r.type)&&(a.preview=URL.createObjectURL(r)),n.
push(a)}return n}function Gs(e,t){return e.replace(/[\p{C}/\\]/gu,"_").slice(-100)||`file-${t+1}`}function Zs(e){return new Promise((t,n)=>{let r=new FileReader;
r.onload=()=>t(String(r.result).replace(/^[^,]*,/,"")),r.onerror=()=>n(new Error(`Can't read the file ${e.name}.`)),r.readAsDataURL(e)})}function bt({session:e,running:t,onSay:n,onStop:r}){let[s,i]=Vo(e),[a,l]=f([]),[c,d]=f(null),[u,h]=f(!1),p=A(null),m=A(null);E(()=>{matchMedia("(pointer: fine)").
matches&&p.current?.focus()},[]);let v=_=>{d(null),zo(_,a).then(l,d)},w=()=>{!s.trim()&&a.length===0||(n(s,a),i(""),l([]),d(null),p.current?.focus())};return o(
"form",{class:"composer"+(u?" over":""),"aria-label":"Write a message",onSubmit:_=>{_.preventDefault(),w()},onDragOver:_=>{_.preventDefault(),h(!0)},onDragLeave:()=>h(
!1),onDrop:_=>{_.preventDefault(),h(!1),v(_.dataTransfer?.files??[])},children:[o(J,{error:c}),o(ei,{files:a,onRemove:_=>l(a.filter(P=>P!==_))}),o("div",{class:"\
composer-row",children:[o("input",{ref:m,type:"file",multiple:!0,hidden:!0,onChange:_=>{v([..._.currentTarget.files??[]]),_.currentTarget.value=""}}),o(y,{look:"\
quiet",label:"Add files",onPress:()=>m.current?.click(),children:o(Qs,{})}),o(Ko,{box:p,label:"Message",hint:"Message the agent",text:s,write:i,send:w,paste:v}),
t&&o(y,{look:"danger",onPress:r,children:"Stop"}),o(y,{look:"main",disabled:!s.trim()&&a.length===0,onPress:w,children:"Send"})]})]})}function jo({session:e,channel:t,
onSay:n}){let[r,s]=Vo(e),i=()=>{r.trim()&&(n(r),s(""))};return o("form",{class:"composer operator","aria-label":"Answer as the operator",onSubmit:a=>{a.preventDefault(),
i()},children:[o("p",{id:"operator-note",class:"operator-note",children:[o("strong",{children:"Answer as the operator."})," People on ",t," see your message, ma\
rked as yours. The agent knows of it, and doesn't answer it."]}),o("div",{class:"composer-row",children:[o(Ko,{label:"Answer as the operator",hint:"Answer as th\
e operator",about:"operator-note",text:r,write:s,send:i}),o(y,{look:"main",disabled:!r.trim(),onPress:i,children:"Send as operator"})]})]})}function Vo(e){let[t,
n]=f(()=>fn.get(e));return[t,s=>{n(s),fn.set(e,s)}]}function Ko({label:e,hint:t,about:n,text:r,write:s,send:i,paste:a,box:l}){return o("textarea",{ref:l,rows:Math.
min(r.split(`
`).length,12),"aria-label":e,"aria-describedby":n,placeholder:t,value:r,onInput:c=>s(c.currentTarget.value),onKeyDown:c=>{c.key!=="Enter"||c.shiftKey||c.isComposing||
(c.preventDefault(),i())},onPaste:c=>{let d=[...c.clipboardData?.files??[]];!a||d.length===0||(c.preventDefault(),a(d))}})}function Qs(){return o("svg",{class:"\
icon",viewBox:"0 0 24 24","aria-hidden":"true",children:o("path",{d:"M20 11.5 12 19.5a5 5 0 0 1-7-7l8.5-8.5a3.4 3.4 0 0 1 4.8 4.8l-8.4 8.4a1.7 1.7 0 0 1-2.4-2.4\
l7.6-7.6"})})}function ei({files:e,onRemove:t}){return e.length===0?null:o("ul",{class:"files","aria-label":"Files to send",children:e.map((n,r)=>o("li",{class:"\
file",children:[n.preview&&o("img",{src:n.preview,alt:""}),o("span",{children:n.name})," ",o("span",{class:"faint",children:j(n.size)}),o("button",{type:"button",
class:"button quiet","aria-label":"Remove "+n.name,onClick:()=>t(n),children:"×"})]},r))})}var ti=/(?![ \n\t])[\p{C}\p{Z}\p{Default_Ignorable_Code_Point}\p{Variation_Selector}\u2800\ufffc\u{16fe4}]/gu;function b(e){return e.replace(ti,t=>{let n=t.codePointAt(
0)??0;return n>65535?"\\U"+n.toString(16).padStart(8,"0"):"\\u"+n.toString(16).padStart(4,"0")})}var gn=6e4,hn=60*gn,bn=24*hn;function ni(e){let t=e.getTime()-Date.now(),n=Math.abs(t);return n<1e4?"just now":n>30*bn?e.toLocaleDateString():t<0?Yo(n)+" ago":"\
in "+Yo(n)}function Yo(e){if(e<gn)return Z(e);if(e<hn)return Z(e-e%gn);if(e<bn)return Z(e-e%hn);let t=Math.round(e/bn);return t===1?"1 day":t+" days"}function Go(e){
let[,t]=f(0);E(()=>{let n=setInterval(()=>t(r=>r+1),e*1e3);return()=>clearInterval(n)},[e])}function vn({at:e,says:t}){let n=new Date(e);return Number.isNaN(n.getTime())?
o("span",{children:e}):o("time",{dateTime:e,title:n.toLocaleString(),children:t(n)})}function T({at:e}){return Go(10),o(vn,{at:e,says:ni})}function de({at:e}){return Go(
1),o(vn,{at:e,says:t=>Z(Math.max(1e3,Date.now()-t.getTime()))})}function vt({at:e}){return o(vn,{at:e,says:t=>t.toLocaleTimeString()})}function O({title:e,about:t,done:n,children:r}){let s=A(null),i=A(0);return E(()=>{!n?.said||n.turn===i.current||document.activeElement!==document.body||(i.current=
n.turn,s.current?.focus({preventScroll:!0}))}),o("div",{class:"page sheet",children:[o("h1",{ref:s,tabIndex:-1,children:e}),t&&o("p",{class:"about",children:t}),
n&&o(oi,{outcome:n}),r]})}function Q(){let[e,t]=f({said:"",error:null,turn:0});return{...e,say:r=>{t(s=>({said:"",error:null,turn:s.turn})),setTimeout(()=>t(s=>({
said:r,error:null,turn:s.turn+1})),50)},fail:r=>t(s=>({said:"",error:r,turn:s.turn}))}}function oi({outcome:e}){return o(g,{children:[o("p",{class:e.said?"note \
done":"away",role:"status",children:e.said}),o(J,{error:e.error})]})}function L({value:e,error:t,again:n}){return t?o(J,{error:t,again:n}):e===void 0?o(se,{}):null}
function V({read:e,rows:t,...n}){return o(g,{children:[o(L,{...e}),e.value!==void 0&&o(z,{...n,rows:t(e.value)})]})}function oe(e){let[t,n]=f(null);if(t===null)
return{ask:n,dialog:null};let{title:r,confirm:s,text:i,act:a}=e(t);return{ask:n,dialog:o(fe,{title:r,confirm:s,danger:!0,onConfirm:a,onClose:()=>n(null),children:i})}}
function wt({label:e,value:t,set:n,children:r}){return o("form",{class:"filters",onSubmit:s=>s.preventDefault(),children:[o("label",{class:"long",children:[e,o(
"input",{type:"search",value:t,spellcheck:!1,onInput:s=>n(s.currentTarget.value)})]}),r]})}function yt(e,...t){let n=t.join(`
`).toLowerCase();return e.toLowerCase().split(/\s+/).every(r=>n.includes(r))}function R({title:e,children:t,wide:n,box:r}){let s="block-"+e.toLowerCase().replace(
/[^a-z]+/g,"-");return o("section",{ref:r,class:"block"+(n?" wide":""),"aria-labelledby":s,tabIndex:r?-1:void 0,children:[o("h2",{id:s,children:e}),t]})}function Oe({
title:e,children:t,close:n}){let r=ce();return o(R,{title:e,wide:!0,box:r,children:[t,o("div",{class:"after",children:o(y,{onPress:n,children:"Close"})})]})}function Le({
after:e,next:t,go:n}){return!e&&!t?null:o("div",{class:"after",children:[e&&o(y,{onPress:()=>n(""),children:"First page"}),t&&o(y,{onPress:()=>n(t),children:"Ne\
xt page"})]})}function S({of:e}){return e?o("span",{class:"name",children:b(e)}):null}function F({of:e}){return e?o("a",{class:"name",href:X("chat",e),children:b(
e)}):null}function kt({text:e}){let t=b(e).split("`");return t.length%2===0?o(g,{children:t.join("`")}):o(g,{children:t.map((n,r)=>r%2===1?o("code",{children:n},
r):n)})}function Ye({of:e,label:t,above:n}){return o("div",{class:"preview",children:[n&&o("h3",{children:n}),o("pre",{tabIndex:0,role:"region","aria-label":t,children:o(
"span",{class:"preview-line",children:b(e)})})]})}function _t({of:e,label:t}){return o(Ye,{of:JSON.stringify(e,null,2),label:t})}function St({spent:e,kept:t=0,look:n}){
return o("svg",{class:"bar "+n,viewBox:"0 0 100 1",preserveAspectRatio:"none","aria-hidden":"true",focusable:"false",children:[o("rect",{class:"all",width:"100",
height:"1"}),t>0&&o("rect",{class:"kept",width:Math.min(100,e+t),height:"1"}),o("rect",{class:"spent",width:Math.min(100,e),height:"1"})]})}function M({look:e,children:t}){
return o("span",{class:"badge "+(e??""),children:t})}var Zo=["reset","turn_start","parked","turn_complete","turn_error","ask","ask_resolved","dead_letter","job","job_output","task","channel"],ri=2e4,Qo="parley-eve\
nts",wn=class{followers=new Set;tabs=new BroadcastChannel(Qo);leave;constructor(){this.tabs.onmessage=t=>{let n=Zo.find(r=>r===t.data?.kind);n&&this.hear({...t.
data,kind:n})}}follow(t){return this.followers.add(t),this.followers.size===1&&document.addEventListener("visibilitychange",this.look),this.look(),()=>{this.followers.
delete(t),!(this.followers.size>0)&&(document.removeEventListener("visibilitychange",this.look),this.look())}}look=()=>{let t=this.followers.size>0&&!document.hidden;
t&&!this.leave?(this.leave=new AbortController,this.lead(this.leave.signal)):t||(this.leave?.abort(),this.leave=void 0)};async lead(t){for(;!t.aborted;){try{await navigator.
locks.request(Qo,{signal:t},()=>this.stream(t))}catch(n){if(!t.aborted)throw n;return}t.aborted||await new Promise(n=>setTimeout(n,ri))}}stream(t){return new Promise(
n=>{let r=new EventSource(te(["events"]));for(let s of Zo)r.addEventListener(s,i=>this.tell(s,i.data));r.addEventListener("error",()=>{r.readyState===EventSource.
CLOSED&&(this.tell("reset","{}"),n())}),t.addEventListener("abort",()=>{r.close(),n()})})}tell(t,n){let{session:r,id:s}=JSON.parse(n),i={kind:t,...r&&{session:r},
...s&&{id:s}};this.tabs.postMessage(i),this.hear(i)}hear(t){for(let n of[...this.followers])n(t)}},er=new wn;function tr(e){return er.follow(e)}function xt(e,t){
let n=A(t);n.current=t;let r=e.join(" ");E(()=>{if(!r)return;let s=new Set(["reset",...r.split(" ")]),i=0,a=er.follow(({kind:l})=>{!s.has(l)||i||(i=setTimeout(()=>{
i=0,n.current()},250))});return()=>{a(),clearTimeout(i)}},[r])}var si=5;function N(e,t,n,r=[],s=0){let[i,a]=f({key:t}),[l,c]=f(0),d=A(e);d.current=e;let u=()=>c(v=>v+1),h=A(0),p=A(0);return xt(r,()=>{h.current||(h.current=setTimeout(
()=>{h.current=0,p.current=Date.now(),u()},Math.max(0,p.current+s-Date.now())))}),E(()=>()=>clearTimeout(h.current),[]),E(()=>{let v=new AbortController,w=!1,_=0,
P=async()=>{if(!(w||document.hidden)){w=!0,clearTimeout(_);try{let I=await d.current(v.signal);v.signal.aborted||a({key:t,value:I})}catch(I){v.signal.aborted||(a(
Ae=>Ae.key===t?{...Ae,error:I}:{key:t,error:I}),_=setTimeout(()=>{P()},Math.min(n,si)*1e3))}finally{w=!1}}};P();let x=setInterval(()=>{P()},n*1e3),U=()=>{P()};return document.
addEventListener("visibilitychange",U),()=>{v.abort(),clearInterval(x),clearTimeout(_),document.removeEventListener("visibilitychange",U)}},[t,n,l]),{...i.key===
t?i:{key:t},again:u}}var yn=10<<20,Tt=e=>/\.(png|jpe?g|gif|webp)$/i.test(e);function Et({session:e,name:t}){let n=B(r=>ii(e,t,r),t);return E(()=>()=>{n.value&&URL.revokeObjectURL(n.
value)},[n.value]),o(g,{children:[o(L,{...n}),n.value&&o("img",{src:n.value,alt:`Picture ${b(t)}`})]})}async function ii(e,t,n){let r=await qe(te(["sessions",e,
"files",t]),{signal:n});if(!r.ok)throw await Ee(r);if(Number(r.headers.get("Content-Length"))>yn)throw await r.body?.cancel(),new Error("This picture is too lar\
ge to show here. You can download it.");let s=await r.arrayBuffer(),i=ai(new Uint8Array(s));if(!i)throw new Error("This file isn't a picture that the page can s\
how. You can download it.");return URL.createObjectURL(new Blob([s],{type:i}))}function ai(e){let t=String.fromCharCode(...e.subarray(0,12));return t.startsWith(
`PNG\r

`)?"image/png":t.startsWith("ÿØÿ")?"image/jpeg":/^GIF8[79]a/.test(t)?"image/gif":/^RIFF[^]{4}WEBP/.test(t)?"image/webp":""}var li=100;function nr({session:e,close:t}){let[{folder:n,after:r},s]=f({folder:"",after:""}),[i,a]=f(null),l=N(h=>k(["sessions",e,"files"],{folder:n,after:r,limit:li},
h),n+`
`+r,20,["turn_complete"]),c=ce(),d=h=>{a(null),s({folder:h,after:""}),c.current?.focus()},u=l.value;return o("section",{ref:c,class:"files-panel","aria-label":"\
Files of this session",tabIndex:-1,children:[o("div",{class:"between",children:[o(ci,{folder:n,open:d}),o(y,{look:"quiet",onPress:t,label:"Close the files",children:"\
Close"})]}),o(L,{...l}),u?.files.length===0&&o("p",{class:"none",children:n||r?"No files here.":"This session has no files yet."}),o("ul",{class:"items",children:u?.
files.map(h=>o("li",{children:o(di,{session:e,file:h,open:d,look:a})},h.name))}),o(Le,{after:r,next:u?.next,go:h=>s({folder:n,after:h})}),i&&o(ui,{session:e,name:i.
name,close:()=>a(null)},i.name)]})}function ci({folder:e,open:t}){let n=e?e.split("/"):[];return o("nav",{class:"trail","aria-label":"Folders",children:[o(y,{look:"\
quiet",disabled:!e,onPress:()=>t(""),children:"All files"}),n.map((r,s)=>o("span",{children:["/ ",o(y,{look:"quiet",disabled:s===n.length-1,onPress:()=>t(n.slice(
0,s+1).join("/")),children:b(r)})]},s))]})}function di({session:e,file:t,open:n,look:r}){let s=b(t.name.slice(t.name.lastIndexOf("/")+1));if(t.folder)return o("\
span",{children:o(y,{look:"quiet",onPress:()=>n(t.name),label:`Open the folder ${s}`,children:[s,"/"]})});let i=Tt(t.name)&&t.bytes<=yn;return o("div",{class:"f\
ile-line",children:[o("span",{class:"name",children:[s," ",o("span",{class:"faint",children:[j(t.bytes),t.changed&&o(g,{children:[", changed ",o(T,{at:t.changed})]})]})]}),
i&&o(y,{onPress:()=>r(t),label:`Show ${s}`,children:"Show"}),o("a",{class:"button",href:te(["sessions",e,"files",t.name]),download:"","aria-label":`Download ${s}`,
children:"Download"})]})}function ui({session:e,name:t,close:n}){let r=ce();return o("figure",{ref:r,class:"picture",tabIndex:-1,children:[o("figcaption",{class:"\
between",children:[o("span",{class:"name",children:b(t)})," ",o(y,{look:"quiet",onPress:n,label:"Close the picture",children:"Close"})]}),o(Et,{session:e,name:t})]})}var Pt=class{turns=[];spoken=[];asks=new Map;tasks=new Map;jobs=new Map;besides=0;moves=0;ready=!1;apply(t,n){switch(t){case"snapshot":return this.replace(n);case"\
message":{let r=n;return this.speak(rr(r,r.delta??"",this.turns.at(-1)?.id??""))}}return this.take(t,n)?this.besides++:this.change(t,n),new Set}take(t,n){switch(t){case"\
tasks":return this.tasks=new Map(n.map(r=>[r.id,kn(this.tasks.get(r.id),r)])),!0;case"jobs":return this.jobs=new Map(n.map(r=>[r.id,or(this.jobs.get(r.id),r)])),
!0;case"task":{let r=n;return this.tasks.set(r.id,kn(this.tasks.get(r.id),r)),!0}case"job":{let r=n;return this.jobs.set(r.id,or(this.jobs.get(r.id),r)),!0}case"\
gone":return this.tasks.delete(n),this.jobs.delete(n),!0}return!1}besidesByTurn(){return Ze([...this.tasks.values(),...this.jobs.values()],t=>t.turn)}change(t,n){
switch(t){case"ask":this.ask(n);return;case"ask_resolved":this.resolve(n);return}if(!n.turn)return;let r=this.turn(n.turn),{state:s}=r;r.version++,t.startsWith(
"block_")?pi(r,t,n):t.startsWith("tool_")?fi(r,t,n):hi(r,t,n),r.state!==s&&this.moves++}turn(t){let n=this.turns.findLast(s=>s.id===t);if(n)return n;let r=Ct(t);
return this.turns.push(r),this.moves++,r}replace(t){let n=new Map(this.turns.map(s=>[s.id,s]));this.turns=t.turns.map(s=>{let i=n.get(s.turn),a={...Ct(s.turn),causes:s.
causes,state:s.state};if(!i)return a;let{calls:l,error:c,usage:d,compacted:u,version:h}=i;return{...a,calls:l,compacted:u,...c&&{error:c},...d&&{usage:d},version:h+
1}});for(let s of t.blocks){let i=this.turns.find(a=>a.id===s.turn);i&&Ge(i,{..._n(s),text:s.text??"",done:s.done??!0})}let r=this.leaveAside();this.spoken=mi(this.
spoken,(t.messages??[]).map(s=>rr(s,s.text??"",s.after??"")));for(let s of t.asks??[])this.asks.set(s.id,s);return this.ready=!0,this.moves++,r}leaveAside(){let t=new Set(
this.turns.map(s=>s.id)),n=s=>!t.has(s.turn)&&!(s.after===""?t.size===0:t.has(s.after)),r=new Set(this.spoken.filter(n).map(s=>s.operator?s.id:s.turn));this.spoken=
this.spoken.filter(s=>!n(s));for(let[s,i]of this.asks)i.state!=="open"&&!t.has(i.turn)&&this.asks.delete(s);return r}speak(t){if(this.spoken.some(i=>i.id===t.id))
return new Set;this.spoken.push(t);let n=this.turns.find(i=>i.id===t.turn);if(n)return n.version++,new Set;let r=new Set(this.turns.map(i=>i.id)),s=new Set(this.
spoken.filter(i=>!r.has(i.turn)).slice(0,-64));return this.spoken=this.spoken.filter(i=>!s.has(i)),new Set([...s].map(i=>i.operator?i.id:i.turn))}ask(t){let n=this.
asks.get(t.id);n&&n.state!=="open"||(this.asks.set(t.id,t),this.touch(t.turn))}resolve(t){let n=t.ask?this.asks.get(t.ask):void 0;if(!n)return;let r=t.answer===
"expired"||t.answer==="withdrawn"?t.answer:"answered";this.asks.set(n.id,{...n,state:r,...t.answer&&{answer:t.answer},...t.by&&{by:t.by}}),this.touch(n.turn)}touch(t){
let n=this.turns.find(r=>r.id===t);n&&n.version++}leave(t){let n=this.turns.splice(0,Math.max(0,Math.min(this.turns.length-t,this.mayLeave()))),r=new Set(n.map(
s=>s.id));for(let[s,i]of this.asks)r.has(i.turn)&&this.asks.delete(s);for(let s of[this.tasks,this.jobs])for(let[i,a]of s)r.has(a.turn)&&s.delete(i);return new Set(
[...n.flatMap(s=>[...s.causes,...s.blocks.map(i=>i.cause)]),...n.length>0?this.leaveAside():[]])}mayLeave(){let t=this.turns.findIndex(n=>n.state==="running"||n.
state==="parked");return t<0?this.turns.length:t}running(){return this.turns.findLast(t=>t.state==="running"||t.state==="parked")}};function Ze(e,t){let n=new Map;
for(let r of e){let s=n.get(t(r));s?s.push(r):n.set(t(r),[r])}return n}function kn(e,t){return e?.ended&&!t.ended?e:t}function or(e,t){let n=e&&!t.ended&&t.printed<
e.printed?e:kn(e,t);return n.output!==void 0||e?.output===void 0||e.printed!==n.printed?n:{...n,output:e.output}}function Ct(e){return{id:e,causes:[],state:"run\
ning",blocks:[],calls:new Map,compacted:0,version:0}}function rr(e,t,n){let r={name:e.name??"",cut:e.cut??!1};return{id:e.call??"",turn:e.turn??"",text:t,after:n,
...e.kind==="operator"&&{operator:r},...e.kind==="told"&&{told:r},...e.command&&{command:e.command}}}function mi(e,t){let n=new Set(t.map(i=>i.id)),r=new Map,s="";
for(let i of e)n.has(i.id)?s=i.id:!i.operator&&!i.told&&r.set(s,[...r.get(s)??[],i]);return[...r.get("")??[],...t.flatMap(i=>[i,...r.get(i.id)??[]])]}function _n(e){
return{number:e.block??0,kind:e.kind??"text",text:"",tool:e.tool??"",call:e.call??"",...e.input!==void 0&&{input:e.input},failed:e.is_error??!1,cut:e.cut??!1,cause:e.
cause??"",name:e.name??"",done:!1,late:!1}}function Ge(e,t){let n=e.blocks.findIndex(r=>r.number>=t.number);n<0?e.blocks.push(t):e.blocks[n]?.number===t.number?
e.blocks[n]=t:e.blocks.splice(n,0,t)}function pi(e,t,n){let r=n.block??0;if(t==="block_reset"){e.blocks=e.blocks.filter(i=>i.number<r);return}if(delete e.retry,
t==="block_start"){Ge(e,_n(n));return}let s=e.blocks.find(i=>i.number===r);if(s||(s={..._n(n),late:!0},Ge(e,s)),t==="block_delta"){s.text+=n.delta??"";return}s.
done=!0,n.input!==void 0&&(s.input=n.input),s.call=n.call||s.call,s.tool=n.tool||s.tool,s.failed||=n.is_error??!1,s.cut||=n.cut??!1}function fi(e,t,n){let r=n.call??
"",s=e.calls.get(r);if(s||(s={id:r,tool:n.tool??"",brief:"",progress:"",state:"running"},e.calls.set(r,s)),!e.blocks.some(i=>i.call===r)){let i=e.blocks.find(a=>a.
kind==="tool_use"&&a.call===""&&a.tool===n.tool);i&&(i.call=r)}switch(t){case"tool_start":s.brief=n.delta??"",s.state="running";break;case"tool_progress":s.progress=
(s.progress+(n.delta??"")+`
`).slice(-gi);break;case"tool_end":s.state=n.error?"failed":"ended",n.error&&(s.error=n.error)}}var gi=2e4;function hi(e,t,n){switch(n.causes&&(e.causes=n.causes),
t){case"turn_start":e.state="running";break;case"parked":e.state="parked";break;case"turn_complete":sr(e),e.state=e.state==="cancelled"?"cancelled":"done",delete e.
retry;break;case"turn_error":sr(e),e.state=n.error?.code==="cancelled"?"cancelled":"failed",n.error&&(e.error=n.error),delete e.retry;break;case"retry":e.retry=
{attempt:n.attempt??2,after_ms:n.after_ms??0,...n.from&&{from:n.from},...n.to&&{to:n.to}};break;case"compaction":e.compacted++;break;case"usage":bi(e,n)}}function sr(e){
e.blocks=e.blocks.filter(t=>t.done)}function bi(e,t){let n=e.usage??{calls:0,input:0,output:0,microdollars:0,priced:!0,model:""};e.usage={calls:n.calls+1,input:n.
input+(t.input??0),output:n.output+(t.output??0),microdollars:n.microdollars+(t.microdollars??0),priced:n.priced&&t.microdollars!==void 0,model:t.model||n.model}}
function ir(e){let t=new Map(e.turns.map(n=>[n.id,n]));return e.spoken.filter(n=>{let r=t.get(n.turn);return!(r&&vi(r).includes(ar(n.text)))&&!e.asks.has(n.id.split(
"#")[0]??"")})}var ar=e=>e.replace(/\s+/g,"");function vi(e){if(e.squeezed?.version!==e.version){let t=ar(e.blocks.filter(n=>n.kind==="text").map(n=>n.text).join(
""));e.squeezed={version:e.version,text:t}}return e.squeezed.text}var wi="200%",At=class{parts=new Map;watcher;add(t,n,r){this.watcher??=new IntersectionObserver(s=>this.hear(s),{root:t.closest(".scroll"),rootMargin:`${wi} 0px`}),
this.parts.set(t,{fill:n,clear:r,near:!0,full:!0}),this.watcher.observe(t)}leave(t){this.watcher?.unobserve(t),this.parts.delete(t)}hear(t){for(let{target:n,isIntersecting:r}of t){
let s=this.parts.get(n);s&&((s.near||r)&&(this.parts.delete(n),this.parts.set(n,s)),s.near=r,s.near&&!s.full&&(s.full=!0,s.fill()))}this.clear()}clear(){let t=[
...this.parts.values()].filter(n=>n.full).length-10;for(let[n,r]of this.parts){if(t<=0)return;!r.full||r.near||yi(n)||(r.full=!1,r.clear(n.getBoundingClientRect().
height),t--)}}};function yi(e){let t=getSelection();return e.contains(document.activeElement)||e.querySelector("details[open]")!==null||t!==null&&!t.isCollapsed&&
t.containsNode(e,!0)}var lr=45e3,cr=400,ki=1e4,_i=1e4;async function Mt(e,t,n){let r={last:""},s=cr;for(;!n.aborted;){try{await Si(e,r,t,n,()=>{s=cr}),t.state("away")}catch(i){if(n.
aborted)return;if(i instanceof Y&&i.status>=400&&i.status<500&&i.status!==429){t.state("away",i.message);return}t.state("away")}await xi(document.hidden?Number.
POSITIVE_INFINITY:s*(.75+Math.random()/2),n),s=Math.min(s*2,ki)}}async function Si(e,t,n,r,s){let i=new AbortController,a=()=>i.abort();r.addEventListener("abor\
t",a);let l=setTimeout(a,lr),c=setTimeout(()=>{},0),d=()=>{clearTimeout(c),document.hidden&&(c=setTimeout(a,_i))};document.addEventListener("visibilitychange",d);
try{let u={Accept:"text/event-stream"};t.last&&(u["Last-Event-ID"]=t.last);let h=await fetch(e,{headers:u,signal:i.signal,credentials:"same-origin",cache:"no-st\
ore"});if(!h.ok||!h.body)throw await Ee(h);s(),n.state("live");let p=new Sn((v,w,_)=>{v&&(t.last=v),n.event(w,JSON.parse(_))}),m=h.body.pipeThrough(new TextDecoderStream).
getReader();for(;;){let{done:v,value:w}=await m.read();if(v)return;clearTimeout(l),l=setTimeout(a,lr),p.take(w)}}finally{clearTimeout(l),clearTimeout(c),document.
removeEventListener("visibilitychange",d),r.removeEventListener("abort",a),i.abort()}}var Sn=class{constructor(t){this.tell=t}tell;rest="";id="";type="";data=[];take(t){
let n=(this.rest+t).split(`
`);this.rest=n.pop()??"";for(let r of n)this.line(r.replace(/\r$/,""))}line(t){if(t===""){this.data.length>0&&this.tell(this.id,this.type,this.data.join(`
`)),this.id=this.type="",this.data=[];return}let n=t.indexOf(":");if(n===0)return;let r=n<0?t:t.slice(0,n),s=n<0?"":t.slice(n+1).replace(/^ /,"");r==="id"?this.
id=s:r==="event"?this.type=s:r==="data"&&this.data.push(s)}};function xi(e,t){return new Promise(n=>{let r=()=>{clearTimeout(i),removeEventListener("online",r),
document.removeEventListener("visibilitychange",s),t.removeEventListener("abort",r),n()},s=()=>{document.visibilityState==="visible"&&r()},i=Number.isFinite(e)?
setTimeout(r,e):void 0;addEventListener("online",r),document.addEventListener("visibilitychange",s),t.addEventListener("abort",r)})}var Jt=class{constructor(t,n,r){this.turns=t;this.changed=n;this.left=r}turns;changed;left;waiting=new Set;goesOn=!1;all(){return this.waiting.size===0?this.turns():
this.turns().filter(t=>!this.waiting.has(t.id))}replace(t){let n=r=>t.has(r.id)&&!this.waiting.has(r.id);this.waiting=new Set(this.turns().filter(r=>!n(r)).map(
r=>r.id)),this.drawMore(40)}drawMore(t){let n=this.turns().filter(r=>this.waiting.has(r.id));for(;t>0;){let r=n.pop();if(!r)break;this.waiting.delete(r.id),t-=Ti(
r)}n.length===0?this.waiting.clear():this.goesOn||this.goOn()}goOn(){this.goesOn=!0,requestAnimationFrame(()=>Bt(()=>{this.goesOn=!1,!this.left.aborted&&(this.drawMore(
20),this.changed())}))}};function Ti(e){return e.blocks.reduce((t,n)=>t+1+n.text.length/1e3,1)}function Bt(e){"requestIdleCallback"in window?requestIdleCallback(
e,{timeout:dr}):setTimeout(e,dr)}var dr=250;var Ei=120,Pi=10,Ot=class{constructor(t,n){this.key=t;this.known=n}key;known;whole=!1;end=-1;rest=[];async read(t){let n=this.rest,r=this.end<0?await this.last(
t):this.end,s=0;for(;r>0&&s<=Pi;){let a=Math.max(0,r-Ei),l=await this.between(a,r,t);s+=l.filter(c=>c.kind==="turn_started").length,n=[...l,...n],r=a}this.end=r,
this.whole=r<=0;let i=this.whole?0:n.findIndex(a=>a.kind==="turn_started");return this.rest=i<0?n:n.slice(0,i),i<0?[]:Tn(n.slice(i),this.key)}async last(t){let{
last:n}=await k(["sessions",this.key],{after:Number.MAX_SAFE_INTEGER,limit:1},t);return n}async between(t,n,r){let{entries:s}=await xn(this.key,t,n,r),i=this.known();
return s.filter(a=>!i.has(a.turn)&&!i.has(a.data?.of??""))}};async function xn(e,t,n,r){let s=[];for(let i=t;i<n;){let{entries:a,next:l}=await k(["sessions",e],
{after:i,limit:n-i},r);if(s.push(...a.filter(c=>c.n<=n)),l===void 0)return{entries:s,last:!0};i=l}return{entries:s,last:!1}}function Tn(e,t,n=!1){let r=new Map,
s=[];for(let i of e){let a=i.data??{},l=r.get(i.turn),c=Ci(i,a,t)??Ai(l,i,a,t);if(c&&s.push(c),!l){if(i.kind!=="turn_started"&&!(n&&ur(i,a)))continue;l={...Ct(i.
turn),state:"done",asks:[]},r.set(i.turn,l),s.push(l)}Mi(l,i,a,t),i.kind==="turn_done"&&(l.state=a.state??"done",l.state!=="done"&&(l.said=(a.outbound??[]).filter(
u=>u.text).map(u=>({id:u.id+"/0",turn:i.turn,text:u.text,after:i.turn}))));let d=ur(i,a);d&&Ge(l,d)}for(let i of r.values())i.asks=i.asks?.filter(a=>a.state!=="\
open")??[];return s.filter(i=>!("blocks"in i)||i.blocks.length>0)}var mr=e=>["web","console"].includes(ie(e).channel);function Ci(e,t,n){let r=e.kind==="notice"&&
(t.code==="operator"||t.code==="told")?t.quotes?.[0]:void 0;if(r&&t.code==="told"){let s=r.name&&r.person?`${r.name} (${r.person})`:r.name||r.person||"";return{
id:(e.cause??e.turn).replace(/#told$/,""),turn:"",text:r.text,after:"",told:{name:s,cut:!1}}}return r?{id:t.of??e.turn,turn:"",text:r.text,after:"",operator:{name:r.
name??"",cut:!1}}:e.kind!=="command"||!t.reply?.text||!mr(n)?null:{id:t.reply.id+"/0",turn:e.turn,text:t.reply.text,after:"",command:t.name??""}}function Ai(e,t,n,r){
if(t.kind!=="tool_result"||n.code||!mr(r))return null;let s=e?.blocks.find(u=>u.kind==="tool_use"&&u.call===t.call);if(s?.tool!=="message")return null;let{channel:i,
chat_id:a,content:l}=s.input??{},c=ie(r),d=[i,a].filter(Boolean).join(":");return typeof l!="string"||l.trim()===""||d!==`${c.channel}:${c.chat}${c.thread&&"/"+
c.thread}`?null:{id:`${t.turn}#${t.call}/0`,turn:"",text:l,after:""}}function Mi(e,t,n,r){let s=e.asks??[],i=(a,l)=>{e.asks=s.map(c=>a(c)?{...c,...l}:c)};t.kind===
"turn_parked"&&(e.asks=[...s,...(n.asks??[]).flatMap(a=>Ji(a,e,r,t.at))]),t.kind==="ask_ended"&&i(a=>a.id===n.ask,{state:n.state,...n.answer&&{answer:n.answer},
...t.person&&{by:t.person}}),t.kind==="turn_done"&&i(a=>a.state==="open",{state:"withdrawn"})}function Ji({id:e,call:t,kind:n,expires:r,...s},i,a,l){if(n==="tas\
k")return[];let c=i.blocks.find(h=>h.kind==="tool_use"&&h.call===t),d={id:e,kind:n,session:a,turn:i.id,person:"",at:l,expires:r,state:"open",...s.reason&&{reason:s.
reason}};if(n==="question")return[{...d,...s.question&&{question:s.question},...s.choices&&{choices:s.choices}}];let u=s.args??c?.input;return[{...d,tool:c?.tool??
"",arguments:u,shown:Bi(s.shown??"",s.shown_of??[],u)}]}function Bi(e,t,n){if(!e)return[];let r=Object.entries(n??{}).filter(([s])=>!t.includes(s));return[{text:e},
...r.map(([s,i])=>({name:s,text:typeof i=="string"?i:JSON.stringify(i)}))]}function ur(e,t){if(!["user","thinking","text","tool_use","tool_result"].includes(e.kind))
return null;let n={number:e.n,kind:e.kind,call:e.call??"",cause:e.cause??"",cut:!1,done:!0,late:!1};switch(e.kind){case"tool_use":return{...n,text:"",tool:t.name??
"",name:"",input:t.args,failed:!1};case"tool_result":return{...n,text:JSON.stringify(t.content??""),tool:"",name:"",failed:!!t.code};default:return{...n,text:t.
text??"",tool:"",name:t.name??"",failed:!1}}}var pr=50,fr=250,Oi=5e3,Lt=class{constructor(t,n,r,s){this.session=t;this.mayJobs=n;this.take=r;this.left=s;s.addEventListener("abort",tr(i=>this.hear(i)))}session;mayJobs;take;left;wanted=new Set;begun=!1;reading=!1;readAll(){
this.begun=!0,this.want("all")}readJob(t){this.want("jobs/"+t)}hear({kind:t,session:n,id:r}){if(this.begun)if(t==="reset")this.readAll();else{if(n!==this.session)
return;t==="task"?this.want(r?"tasks/"+r:"all"):(t==="job"||t==="job_output")&&r&&this.want("jobs/"+r)}}want(t){t.startsWith("jobs/")&&!this.mayJobs||(this.wanted.
add(t),this.reading||this.readIn(fr))}readIn(t){this.reading=!0,setTimeout(()=>{this.read()},t)}async read(){let t=!1;for(let n of[...this.wanted]){if(this.left.
aborted)return;this.wanted.delete(n);try{await(n==="all"?this.readLists():this.readOne(n))}catch(r){if(this.left.aborted)return;let s=r instanceof Y?r.status:0;
s===404?this.take("gone",n.slice(n.indexOf("/")+1)):s===0||s===429||s>=500?(this.wanted.add(n),t=!0):this.begun=!1}}this.reading=!1,this.wanted.size>0&&this.readIn(
t?Oi:fr)}async readLists(){let{tasks:t}=await k(["tasks"],{session:this.session,limit:pr},this.left);if(this.take("tasks",t),!this.mayJobs)return;let{jobs:n}=await k(
["jobs"],{session:this.session,limit:pr},this.left);this.take("jobs",n);for(let r of n)r.state==="running"&&this.wanted.add("jobs/"+r.id)}async readOne(t){let[n="",
r=""]=t.split("/");this.take(n==="tasks"?"task":"job",await k([n,r],{},this.left))}};var Li=3e3,Xi=8,$i=120,gr=90,Di=2,Xt=class{constructor(t,n,r,s,i){this.key=t;this.changed=n;let a=(l,c)=>{this.log.apply(l,c),this.draw()};this.work=new Lt(t,s,
a,this.left.signal),this.messages=[...i,...Ke.get(t).filter(l=>!i.some(c=>c.key===l.key))],this.first=this.messages.filter(l=>!l.id),Ke.set(t,this.messages),Mt(
te(["sessions",t,"events"]),{event:(l,c)=>{this.apply(l,c),l==="snapshot"&&this.work.readAll(),l==="snapshot"&&r&&this.readAsks(),this.draw()},state:(l,c="")=>{
this.live=l==="live",this.live&&this.begin(),this.away=c,this.draw()}},this.left.signal),setTimeout(()=>this.begin(),Li)}key;changed;log=new Pt;messages=[];live=!1;away="";problem="";earlier=[];first;past=null;left=new AbortController;drawn=new Jt(
()=>this.log.turns,()=>this.draw(),this.left.signal);work;frame=0;trims=!1;begin(){if(!this.left.signal.aborted)for(let t of this.first.splice(0))this.send(t)}apply(t,n){
let r=this.log.turns,s=r[0]?.id;this.leave(this.log.apply(t,n)),t==="snapshot"&&this.drawn.replace(new Set(r.map(i=>i.id))),s!==void 0&&this.log.turns[0]?.id!==
s&&(this.earlier=[],this.past=null),this.log.turns.length>$i&&!this.trims&&this.log.mayLeave()>0&&(this.trims=!0,Bt(()=>this.trim()))}leave(t){t.size!==0&&(this.
messages=this.messages.filter(n=>!n.id||!t.has(n.id)),Ke.set(this.key,this.messages))}trim(){if(this.left.signal.aborted)return;let t=this.log.turns.length;this.
earlier.length>0?this.earlier=this.earlier.slice(1):this.leave(this.log.leave(Math.max(gr,t-Di))),this.past=null,this.draw(),this.trims=this.earlier.length>0||this.
log.turns.length<t&&this.log.turns.length>gr,this.trims&&requestAnimationFrame(()=>Bt(()=>this.trim()))}mayHaveEarlier(){return this.past?!this.past.whole:this.
log.turns.length>=Xi}async readEarlier(){let t=this.past??=new Ot(this.key,()=>this.shown()),n=await t.read(this.left.signal);this.past===t&&(n.length>0&&(this.
earlier=[n,...this.earlier]),this.work.readAll(),this.draw())}shown(){let t=new Set;for(let n of[...this.log.turns,...this.log.spoken,...this.earlier.flat()])t.
add(n.id),"turn"in n&&t.add(n.turn);return t.delete(""),t}readJob=t=>this.work.readJob(t);close(){this.left.abort(),cancelAnimationFrame(this.frame)}say(t,n){this.
add(Ve(this.key,t,n))}sayAsOperator(t){this.add({...Ve(this.key,t,[]),operator:!0})}add(t){this.messages=[...this.messages,t],this.send(t)}async send(t){let n=()=>{
Ke.set(this.key,this.messages),this.draw()};await No(t,n);let r=()=>!this.pending().includes(t);t.operator?await Fo(t,n,r,this.left.signal):Uo(t)&&await Wo(t,n,
r,this.left.signal)}drop(t){this.messages=this.messages.filter(n=>n!==t),this.draw()}pending(){let t=this.messages.filter(r=>r.state!=="done");if(t.length===0)return t;
let n=new Set;for(let r of this.log.turns){for(let s of r.causes)n.add(s);for(let s of r.blocks)s.kind==="user"&&n.add(s.cause)}for(let r of this.log.spoken)n.add(
r.operator?r.id:r.turn);return t.filter(r=>!r.id||!n.has(r.id))}sentOf(t){return this.messages.filter(n=>n.id&&t.causes.includes(n.id)&&!t.blocks.some(r=>r.kind===
"user"&&r.cause===n.id))}aside(t,n){let r=new Map(this.messages.map(s=>[s.id,s]));return t.filter(s=>!n.has(s.turn)).map(s=>{let i=s.turn?r.get(s.turn):void 0;return r.
delete(s.turn),i?{message:i,spoken:s}:{spoken:s}})}async readAsks(){try{let{asks:t}=await k(["asks"],{session:this.key},this.left.signal);for(let n of t)this.log.
apply("ask",n);this.problem=""}catch(t){if(this.left.signal.aborted)return;this.problem="Couldn't load the open requests: "+Je(t)}this.draw()}draw(){this.frame||
(this.frame=requestAnimationFrame(()=>{this.frame=0,this.changed()}))}};function $t(e){let t=e.shown??[];return(t.length>0||e.arguments===void 0?t:[{text:JSON.stringify(e.arguments,null,2)}]).map(r=>({...r,text:b(r.text)}))}function hr(e){
return e.reduce((t,n)=>t+n.text.split(`
`).length,0)}function Xe({parts:e,tool:t,most:n=1/0}){let r=n,s=[];for(let i of e){if(r<=0)break;let a=i.text.split(`
`).slice(0,r);r-=a.length,s.push({part:i,lines:a})}return o("div",{class:"preview",children:s.map(({part:i,lines:a})=>{let l=i.name&&b(i.name);return o("div",{children:[
l&&o("h3",{children:l}),o("pre",{tabIndex:0,role:"region","aria-label":l||"What would run",children:a.map((c,d)=>o(Ni,{text:c,marked:!i.name&&Ri(i.text,t)},d))})]},
i.name??"")})})}function Ri(e,t){return t==="write_file"?!/^[^\n]*(a new file|all of it):\n/.test(e):t==="edit_file"||t==="apply_patch"}function Ni({text:e,marked:t}){
let n="";return t&&e.startsWith("+")?n="plus":t&&e.startsWith("-")?n="minus":t&&/^(@@|\*\*\*)/.test(e)&&(n="head"),o("span",{class:"preview-line "+n,children:e+
`
`})}function br(e,t){if(t.owner)return"";let n=e.person==="web:"+t.name;return e.kind==="question"?n&&(t.may.agent||t.may.approve)?"":"Only an owner or the person w\
ho started this turn can answer.":n?"You started this turn yourself, so someone else needs to approve the call.":t.may.approve?"":"Your token needs the approve \
scope to decide this."}function Dt(e,t,n=""){return H(["asks",e.id],n?{answer:t,reason:n}:{answer:t})}function Rt({ask:e}){return e.kind==="question"?o(g,{children:"The agent has a question"}):o(g,{children:[o("code",{children:b(e.tool??"A tool")})," needs appro\
val"]})}function Nt({ask:e,me:t,most:n,onDone:r}){let s=br(e,t);return o(g,{children:[e.reason&&o("p",{children:["Reason: ",b(e.reason)]}),e.kind==="question"?o(
Fi,{ask:e,closed:s!=="",onDone:r}):o(Ii,{ask:e,closed:s!=="",most:n,onDone:r}),s&&o("p",{class:"note",children:s})]})}function Ii({ask:e,closed:t,most:n,onDone:r}){
let s=$t(e),i=hr(s),[a,l]=f(i<=n),[c,d]=f(""),[u,h]=f(""),[p,m]=f(null),v=b(e.tool??"the call"),w=async x=>r(await Dt(e,x)),_=x=>()=>a?w(x):h(x),P=async()=>r(await Dt(
e,"deny",c.trim()));return o(g,{children:[o(Xe,{parts:s,tool:e.tool,most:a?1/0:n}),!a&&o("div",{children:o(y,{onPress:()=>l(!0),children:["Show all ",i," lines"]})}),
o(J,{error:p}),!t&&o(g,{children:[o("div",{class:"decide",children:[o(y,{look:"main",onPress:_("approve"),onError:m,label:`Approve once: ${v}`,children:"Approve\
 once"}),o(y,{onPress:_("session"),onError:m,label:`Approve for this session: ${v}`,children:"Approve for this session"}),o("label",{class:"away",for:"reason-"+
e.id,children:"Reason for denying, which the agent sees"}),o("input",{id:"reason-"+e.id,placeholder:"Why not? (optional)",value:c,onInput:x=>d(x.currentTarget.value)}),
o(y,{look:"danger",onPress:P,onError:m,label:`Deny: ${v}`,children:"Deny"})]}),o("p",{class:"faint",children:"If you approve it for this session, exactly the sa\
me call runs there again without asking."})]}),u&&o(fe,{title:"You haven't seen all of it",confirm:"Approve anyway",onConfirm:()=>w(u),onClose:()=>h(""),children:[
"The call has ",i," lines. You see the first ",n,"."]})]})}function Fi({ask:e,closed:t,onDone:n}){let[r,s]=f(""),[i,a]=f(null),l=async d=>n(await Dt(e,d)),c=()=>l(
r.trim());return o(g,{children:[o("p",{class:"question",children:b(e.question??"")}),o(J,{error:i}),!t&&e.choices&&e.choices.length>0&&o("div",{class:"decide",children:e.
choices.map((d,u)=>o(y,{onPress:()=>l(d),onError:a,children:b(d)},u))}),!t&&o("form",{class:"decide",onSubmit:d=>{d.preventDefault(),r.trim()&&c().catch(a)},children:[
o("label",{class:"away",for:"words-"+e.id,children:"Your answer"}),o("input",{id:"words-"+e.id,placeholder:"Answer in your own words",value:r,onInput:d=>s(d.currentTarget.
value)}),o(y,{disabled:!r.trim(),onPress:c,onError:a,children:"Answer"})]})]})}var Ui=15;function En({ask:e,me:t}){let[n,r]=f(null),s=e.state==="open"&&n?n:e;if(s.state!=="open")return o(Wi,{ask:s,me:t});let i="ask-"+e.id;return o("div",{class:"\
ask open",role:"group","aria-labelledby":i,children:[o("div",{class:"ask-title",id:i,children:o(Rt,{ask:e})}),o(Nt,{ask:e,me:t,most:Ui,onDone:r}),o("div",{class:"\
faint",children:["Expires ",o(T,{at:e.expires})]})]})}function Wi({ask:e,me:t}){return o("details",{class:"ask ended",children:[o("summary",{children:[e.kind===
"question"?b(e.question??""):o("code",{children:b(e.tool??"")})," ",o("strong",{children:qi(e,t)})]}),e.reason&&o("div",{children:["Reason: ",b(e.reason)]}),e.kind===
"approval"&&o(Xe,{parts:$t(e),tool:e.tool})]})}var Hi={approve:"Approved",session:"Approved for this session",deny:"Denied"};function qi(e,t){if(e.state==="expi\
red")return"Expired: nobody answered in time";if(e.state==="withdrawn")return"Withdrawn";let n=e.by?e.by==="web:"+t.name?" by you":" by "+b(e.by):"",r=e.answer??
"";return(e.kind==="approval"?Hi[r]??"Answered":b(r))+n}function It(e){switch(e.state){case"running":return["running",e.stopping?"stopping":"running"];case"exited":return[e.exit_code?"failed":"ok",`exit code ${e.exit_code??
0}`];case"stopped":return["over","stopped"];case"killed":return["failed","stopped at a limit"];case"failed":return["failed","couldn't be run"];default:return["u\
nknown","outcome unknown"]}}function Ft({of:e,session:t}){return o(g,{children:["This ends ",o("code",{class:"name",children:b(e.command)}),t&&o(g,{children:[" \
of ",o("span",{class:"name",children:b(t)})]}),", which may leave its work half done. Parley tells its conversation."]})}var zi=4e3,ue=class extends ee{#t="";#n=[];#e=[];#o=0;shouldComponentUpdate(t){return t.text!==this.props.text}render(){let{text:t}=this.props;t.startsWith(this.#t)||
(this.#t="",this.#n=[],this.#e=[],this.#o=0);let n=t.slice(this.#t.length).split(`
`),r=wr(n,0,{left:zi-this.#o}),s=r.at(-2);if(s&&s.at>0){this.#t+=n.slice(0,s.at).join(`
`)+`
`;for(let a of r.splice(0,r.length-2))this.#r(a)}let i=ji([...this.#e,...r.map(a=>a.part)]);return o("div",{class:"markdown",children:[...this.#n,...i].map((a,l)=>o(
Mn,{parts:a},l))})}#r(t){this.#o+=t.elements,this.#e.push(t.part),!(this.#e.length<An)&&(this.#n.push(this.#e),this.#e=[])}},An=12;function ji(e){let t=[];for(let n=0;n<
e.length;n+=An)t.push(e.slice(n,n+An));return t}var Mn=class extends ee{shouldComponentUpdate(t){return t.parts!==this.props.parts}render(){return o("div",{class:"\
section",children:this.props.parts})}},Jn=6;function Ht(e,t,n){return wr(e,t,n).map(r=>r.part)}function wr(e,t,n){let r=[],s=0;for(;s<e.length;){let i=e[s]??"";
if(i.trim()===""){s++;continue}if(n.left<=0){r.push({part:o(Vi,{text:e.slice(s).join(`
`),told:t===0}),at:s,elements:1});break}let a=n.left--,[l,c]=Ki(e,s,n)??Yi(e,s,n)??Qi(i,s,n)??Sr(i,s)??ea(e,s,n)??ta(e,s,t,n)??na(e,s,t,n)??ia(e,s,n);r.push({part:l,
at:s,elements:a-n.left}),s=c}return r}function Vi({text:e,told:t}){return o(g,{children:[t&&o("p",{class:"faint",children:"The rest of this text is too long to \
format."}),o("div",{class:"as-written",children:kr(e)})]})}var yr=6;function Ki(e,t,n){let r=/^ {0,3}(`{3,}|~{3,})\s*([^`]*)$/.exec(e[t]??"");if(!r)return null;
let s=r[1]??"```",i=[],a=t+1;for(;a<e.length;a++){let l=e[a]??"",c=l.trim();if(c.startsWith(s)&&c.replaceAll(s[0]??"`","")==="")break;i.push(l)}return n.left-=yr,
[o(qt,{text:i.join(`
`),language:(r[2]??"").trim().split(/\s/)[0]??""}),a+1]}function Yi(e,t,n){let r=/^( {4}|\t)/;if(!r.test(e[t]??""))return null;let s=[],i=t;for(;i<e.length&&(r.
test(e[i]??"")||(e[i]??"").trim()==="");i++)s.push((e[i]??"").replace(r,""));return n.left-=yr,[o(qt,{text:s.join(`
`).trimEnd()}),i]}function qt({text:e,language:t=""}){return o("div",{class:"code",children:[o("div",{class:"code-bar",children:[o("span",{children:t}),o("butto\
n",{type:"button",onClick:r=>{let s=r.currentTarget;navigator.clipboard?.writeText(e).then(()=>{s.textContent="Copied"})},children:"Copy"})]}),o("pre",{tabIndex:0,
children:o("code",{children:kr(e)})})]})}var Gi=100,Zi=200;function kr(e){let t=e.split(`
`),n=Gi;if(t.length<=n)return e;for(;t.length>n*Zi;)n*=2;let r=[];for(let s=0;s<t.length;s+=n){let i=s+n<t.length?`
`:"";r.push(o("span",{class:"piece",children:t.slice(s,s+n).join(`
`)+i},s))}return r}function Qi(e,t,n){let r=/^ {0,3}(#{1,6})\s+(.*?)(?:\s+#+)?\s*$/.exec(e);return r?[_r(r[1]?.length??1,ae(r[2]??"",n)),t+1]:null}function _r(e,t){
return e===1?o("h3",{class:"large",children:t}):e===2?o("h3",{children:t}):o("h4",{children:t})}function Sr(e,t){return/^ {0,3}([-*_])\s*(\1\s*){2,}$/.test(e)?[
o("hr",{}),t+1]:null}var Pn=e=>e.trim().replace(/^\||\|$/g,"").split(/(?<!\\)\|/).map(t=>t.trim().replaceAll("\\|","|"));function ea(e,t,n){let r=e[t]??"";if(!r.
includes("|")||!/^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$/.test(e[t+1]??""))return null;let s=Pn(r),i=s.length+1;if(s.length!==Pn(e[t+1]??"").length||i>n.left)
return null;n.left-=i+3;let a=s.map(u=>o("th",{scope:"col",children:ae(u,n)})),l=[],c=t+2;for(;c<e.length&&(e[c]??"").includes("|")&&i<=n.left;c++){n.left-=i;let u=Pn(
e[c]??"");l.push(o("tr",{children:s.map((h,p)=>o("td",{children:ae(u[p]??"",n)}))}))}return c<e.length&&(e[c]??"").includes("|")&&(n.left=0),[o("div",{class:"ta\
ble",tabIndex:0,role:"region","aria-label":"Table",children:o("table",{children:[o("thead",{children:o("tr",{children:a})}),o("tbody",{children:l})]})}),c]}function ta(e,t,n,r){
if(n>=Jn||!/^ {0,3}>/.test(e[t]??""))return null;let s=[],i=t;for(;i<e.length&&/^ {0,3}>/.test(e[i]??"");i++)s.push((e[i]??"").replace(/^ {0,3}> ?/,""));return[
o("blockquote",{children:Ht(s,n+1,r)}),i]}var Wt=/^( *)([-*+]|\d{1,9}[.)])(?:\s+(.*))?$/,Ut=e=>e.slice(-1),ye=e=>e.length-e.trimStart().length;function na(e,t,n,r){
let s=Wt.exec(e[t]??"");if(!s||n>=Jn)return null;let i=(s[1]??"").length,a=s[2]??"",l=[],c=!1,d=t,u=0;for(;d<e.length;){let p=e[d]??"",m=Wt.exec(p),v=m!==null&&
ye(p)<i+2&&ye(p)>=i;if(p.trim()===""){let w=d+1;for(;w<e.length&&(e[w]??"").trim()==="";)w++;let _=e[w]??"",P=Wt.exec(_),x=P!==null&&ye(_)>=i&&Ut(P[2]??"")===Ut(
a);if(w===e.length||!(x||ye(_)>=u))break;c||=ye(_)<u+2,l.at(-1)?.lines.push(""),d=w}else if(v){if(Ut(m[2]??"")!==Ut(a))break;u=ye(p)+(m[2]??"").length+1,l.push(
{lines:[m[3]??""],at:d}),d++}else if(ye(p)>i)l.at(-1)?.lines.push(p.slice(Math.min(ye(p),u))),d++;else break}let h=[];for(let p of l){if(r.left<=0&&h.length>0){
d=p.at;break}r.left--,h.push(o("li",{children:c?Ht(p.lines,n+1,r):ra(p.lines,n,r)}))}return[/\d/.test(a)?o("ol",{start:Number.parseInt(a,10),children:h}):o("ul",
{children:h}),d]}var oa=/^(`{3,}|~{3,}|>|#{1,6}\s|[-*+]\s|\d{1,9}[.)]\s)/;function ra(e,t,n){let[r="",...s]=e;if(oa.test(r)&&t+1<Jn)return Ht(e,t+1,n);let i=/^\[([ xX])\]\s+(.*)$/.
exec(r),a=[i?i[2]??"":r];for(;s.length>0&&(s[0]??"").trim()!==""&&!Wt.test(s[0]??"")&&!/^ {0,3}(```|~~~|>|#)/.test(s[0]??"");)a.push(s.shift()??"");return[i?i[1]===
" "?"☐ ":"☑ ":null,ae(a.join(`
`),n),s.some(c=>c.trim())?Ht(s,t+1,n):null]}var sa=/^ {0,3}(`{3,}|~{3,}|#{1,6}\s|>|[-*+]\s|1[.)]\s)/;function ia(e,t,n){let r=[],s=t;for(;s<e.length;s++){let i=e[s]??
"",a=s>t?/^ {0,3}(=+|-{2,})\s*$/.exec(i)?.[1]:void 0;if(a)return[_r(a.startsWith("=")?1:2,ae(r.join(`
`),n)),s+1];if(i.trim()===""||s>t&&(sa.test(i)||Sr(i,s)))break;r.push(i)}return[o("p",{children:ae(r.join(`
`),n)}),s]}var aa=[{first:"\\",at:/^\\([!-/:-@[-`{-~])/,make:e=>e[1]},{first:"`",at:/^(`+)([^`]|[^`][\s\S]*?[^`])\1(?!`)/,make:e=>o("code",{children:(e[2]??"").
replace(/^ (.*) $/,"$1")})},{first:"![",at:/^!?\[((?:[^[\]\\]|\\.)*)\]\(\s*<?([^\s<>()]*(?:\([^\s()]*\)[^\s<>()]*)*)>?(?:\s+"[^"]*")?\s*\)/,make:(e,t)=>Cn(e[2]??
"",ae(e[1]??"",t),e[0])},{first:"<",at:/^<(https?:\/\/[^\s<>]+|mailto:[^\s<>]+)>/,make:e=>Cn(e[1]??"",e[1]??"",e[0])},{first:"h",at:/^https?:\/\/[^\s<>"'`]*[^\s<>"'`.,;:!?)\]}*_~]/,
make:e=>Cn(e[0],e[0],e[0])},{first:"*",at:/^\*\*\*(?=[^\s*])([^*]*?[^\s*])\*\*\*/,make:(e,t)=>o("strong",{children:o("em",{children:ae(e[1]??"",t)})})},{first:"\
*",at:/^\*\*(?=\S)((?:[^*]|\*(?!\*))*?\S)\*\*/,make:(e,t)=>o("strong",{children:ae(e[1]??"",t)})},{first:"_",at:/^__(?=\S)((?:[^_]|_(?!_))*?\S)__(?!\w)/,make:(e,t)=>o(
"strong",{children:ae(e[1]??"",t)})},{first:"*",at:/^\*(?=[^\s*])([^*]*?[^\s*])\*(?!\*)/,make:(e,t)=>o("em",{children:ae(e[1]??"",t)})},{first:"_",at:/^_(?=[^\s_])([^_]*?[^\s_])_(?!\w)/,
make:(e,t)=>o("em",{children:ae(e[1]??"",t)})},{first:"~",at:/^~~(?=\S)([^~]*?\S)~~/,make:(e,t)=>o("s",{children:ae(e[1]??"",t)})},{first:` \\
`,at:/^(?: *|\\)\n */,make:()=>o("br",{})},{first:"&",at:/^&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z][a-zA-Z0-9]{1,31});/,make:e=>la(e[0])}];function la(e){return new DOMParser().
parseFromString(e,"text/html").body.textContent??e}var vr=/[\\`![<*_~h&]| *\n/g;function ae(e,t){let n=[],r="",s=0;for(;s<e.length;){vr.lastIndex=s;let i=vr.exec(
e);if(!i)break;if(r+=e.slice(s,i.index),s=i.index,t.left<=0)return r&&n.push(r),n.push(o("span",{class:"as-written",children:e.slice(s)})),n;let a=da(e,s,t);if(!a){
r+=e[s],s++;continue}if(s+=a.length,typeof a.part=="string"){r+=a.part;continue}r&&n.push(r),r="",n.push(a.part)}return r+=e.slice(s),r&&n.push(r),n}var ca=2e3;
function da(e,t,n){let r=e[t-1]??" ",s=e[t]??"";if((s==="_"||s==="h"||s==="*"&&e[t+1]!=="*")&&/\w/.test(r))return null;let a=e.slice(t,t+ca);for(let l of aa){let c=l.
first.includes(s)?l.at.exec(a):null;if(!c)continue;let d=l.make(c,n);return(typeof d!="string"||s==="&")&&n.left--,{part:d,length:c[0].length}}return null}function Cn(e,t,n){
return Tr(e)?o("a",{href:e,target:"_blank",rel:"noopener noreferrer",children:t}):n.startsWith("<")?n:[t,` (${e})`]}function xr(e){return/^https?:/i.test(e)&&Tr(
e)}function Tr(e){try{return/^(https?:\/\/|mailto:)/i.test(e)&&["http:","https:","mailto:"].includes(new URL(e).protocol)}catch{return!1}}function Er({of:e,me:t,readJob:n}){return"command"in e?o(fa,{job:e,me:t,read:()=>n(e.id)}):o(ma,{task:e})}var ua={prepared:["waiting","waiting to start"],running:[
"running","working"],waiting:["waiting","waiting for an answer"],done:["ok","done"],failed:["failed","failed"],cancelled:["over","stopped"],lost:["unknown","its\
 session was erased"]};function ma({task:e}){let[t,n]=ua[e.state],r=e.state==="running"&&e.tools?"running "+e.tools.map(b).join(", "):n,s=e.usage.input+e.usage.
output;return o("div",{class:"beside task "+t,role:"group","aria-label":"Sub-agent "+b(e.agent),children:[o("div",{class:"beside-line",children:[o("span",{class:"\
mark","aria-hidden":"true"}),o("span",{children:["Sub-agent ",o("strong",{children:b(e.agent)})]}),o("span",{class:"beside-state",children:e.stopping?"stopping":
r}),!e.ended&&o("span",{class:"faint",children:["for ",o(de,{at:e.started})]}),e.usage.calls>0&&o("span",{class:"faint",title:$(e.usage.calls,"model call"),children:[
C(s)," tokens"]}),e.state!=="lost"&&o("a",{href:X("chat",e.session),"aria-label":"Open its session: sub-agent "+b(e.agent),children:"Open its session"})]}),e.title&&
o("div",{class:"faint",children:b(e.title)}),e.report&&o("details",{class:"beside-more",children:[o("summary",{children:e.state==="done"?"Its answer":"What it r\
eported"}),o(ue,{text:e.report}),e.cut&&o("p",{class:"faint",children:"This is only the beginning. The sub-agent's session has the rest."})]})]})}var pa=12;function fa({
job:e,me:t,read:n}){let[r,s]=f(!1),[i,a]=It(e),l=b(e.command),c=async()=>{await G(["jobs",e.id]),n()};return o("div",{class:"beside job "+i,role:"group","aria-l\
abel":"Background job "+l,children:[o("div",{class:"beside-line",children:[o("span",{class:"mark","aria-hidden":"true"}),o("code",{class:"beside-command",children:l}),
o("span",{class:"beside-state",children:a}),e.state==="running"&&o("span",{class:"faint",children:["for ",o(de,{at:e.started})]}),t.may.admin&&e.state==="runnin\
g"&&!e.stopping&&o(y,{look:"danger",onPress:()=>s(!0),label:"Stop "+l,children:"Stop…"})]}),e.detail&&o("div",{class:"faint",children:b(e.detail)}),e.state===
"running"?o(ga,{job:e}):o(ha,{job:e,read:n}),r&&o(fe,{title:"Stop this job?",confirm:"Stop job",danger:!0,onConfirm:c,onClose:()=>s(!1),children:o(Ft,{of:e})})]})}
function ga({job:e}){if(!e.output)return null;let t=e.output.trimEnd().split(`
`);return o(Pr,{text:t.slice(-pa).join(`
`),label:"Newest output of "+b(e.command)})}function ha({job:e,read:t}){return e.printed===0?null:o("details",{class:"beside-more",onToggle:r=>{r.currentTarget instanceof
HTMLDetailsElement&&r.currentTarget.open&&e.output===void 0&&t()},children:[o("summary",{children:["Output, ",j(e.printed)]}),e.output===void 0?o("p",{class:"fa\
int",children:"Loading…"}):o(Pr,{text:e.output,label:"Output of "+b(e.command)})]})}function Pr({text:e,label:t}){return o("pre",{class:"beside-output",tabIndex:0,
role:"region","aria-label":t,children:b(e)})}var ba={writing:"writing",waiting:"waiting",running:"running",ok:"done",failed:"failed",unknown:"outcome unknown",over:"ended"},Qe=class extends ee{drawn="";shouldComponentUpdate(t){
return Cr(t)!==this.drawn}render(){return this.drawn=Cr(this.props),o(va,{...this.props})}};function Cr({call:e,use:t,result:n,over:r}){let s=e?.progress??"";return JSON.
stringify([r,e?.id,e?.state,e?.brief,s.length,s.slice(-80),e?.error?.code,t?.text.length,t?.done,t?.call,t?.tool,t?.cut,n?.text.length,n?.done,n?.failed,n?.cut])}
function va({session:e,call:t,use:n,result:r,over:s}){let[i,a]=f(!1),l=n?.tool||t?.tool||"tool",c=xa(n),d=c?zt(c.others):Ta(n),u=r?Ea(r.text):"",h=_a(t,n,r,s),p=t?.
error;return o("details",{class:"call "+h,onToggle:m=>m.currentTarget.open&&a(!0),children:[o("summary",{children:[o("span",{class:"mark","aria-hidden":"true"}),
o("span",{class:"call-name",children:b(l)}),o("span",{class:"call-brief",children:b(t?.brief||Pa(c?c.others:n?.input,d))}),o("span",{class:"call-state",children:ba[h]})]}),
o("div",{class:"call-body",children:[c&&o("div",{class:"labeled",children:[o("div",{class:"faint",children:["Change",n?.cut&&Jr]}),o(Xe,{parts:[{text:b(c.lines)}],
tool:l})]}),d!==""&&o(Bn,{title:"Arguments",text:b(d),cut:n?.cut}),h==="running"&&t?.progress&&o(Bn,{title:"Progress",text:t.progress}),p&&o("p",{class:"call-er\
ror",children:[p.message," ",o("span",{class:"faint",children:["(",p.code,")"]})]}),h==="unknown"&&o("p",{class:"call-error",children:"The call was interrupted.\
 It may or may not have taken effect."}),r&&u!==""&&!(p&&u.includes(p.message))&&o(Bn,{title:"Result",text:u,cut:r.cut}),i&&r&&!r.failed&&ka(r.text).map(m=>o(wa,
{session:e,name:m},m))]})]})}var Jr=" (shortened; the log has the full text)";function Bn({title:e,text:t,cut:n}){return o("div",{class:"labeled",children:[o("d\
iv",{class:"faint",children:[e,n&&Jr]}),o(qt,{text:t})]})}function wa({session:e,name:t}){return o("figure",{class:"picture",children:[o("figcaption",{class:"fa\
int name",children:b(t)}),o(Et,{session:e,name:t})]})}var ya=8;function ka(e){try{let t=JSON.parse(e),n=Array.isArray(t?.content)?t.content:[],r=[t?.path,...n.map(
s=>s?.path)].filter(s=>typeof s=="string").filter(Tt);return[...new Set(r)].slice(0,ya)}catch{return[]}}function _a(e,t,n,r){return e?.error?.code===Ar||n?.failed&&
Sa(n.text)===Ar?"unknown":n?n.failed?"failed":"ok":e&&e.state!=="running"?e.state==="failed"?"failed":"ok":r?"over":e?"running":t&&!t.done?"writing":"waiting"}var Ar="\
outcome_unknown";function Sa(e){return/"code"\s*:\s*"([a-z_]+)"/.exec(e)?.[1]??""}function xa(e){if(e?.input===null||typeof e?.input!="object")return null;let{old_text:t,
new_text:n,patch:r,...s}=e.input;return e.tool==="apply_patch"&&typeof r=="string"?{lines:r,others:s}:e.tool!=="edit_file"||typeof t!="string"||typeof n!="strin\
g"?null:{lines:[...Mr("-",t),...Mr("+",n)].join(`
`),others:s}}var Mr=(e,t)=>t===""?[]:t.replace(/\n$/,"").split(`
`).map(n=>e+n);function Ta(e){if(!e)return"";if(e.input!==void 0)return zt(e.input);try{return zt(JSON.parse(e.text))}catch{return e.text}}function zt(e){return typeof e==
"string"?e:e!==null&&typeof e=="object"&&Object.keys(e).length===0?"":JSON.stringify(e,null,2)}function Ea(e){try{return zt(JSON.parse(e))}catch{return e}}function Pa(e,t){
let r=(e!==null&&typeof e=="object"?Object.values(e).filter(s=>typeof s!="object").join("  "):t).replace(/\s+/g," ").trim();return r.length>160?r.slice(0,160)+"\
…":r}var Pe=class extends ee{shouldComponentUpdate(t){let n=this.props;return t.turn!==n.turn||t.version!==n.version||t.sent.length!==n.sent.length||t.said.length!==
n.said.length||t.asks.length!==n.asks.length||!Ca(t.beside,n.beside)}render(){let{session:t,turn:n,sent:r,said:s,asks:i,beside:a,readJob:l,me:c,numbered:d}=this.
props,u=new Map(n.blocks.filter(w=>w.kind==="tool_result").map(w=>[w.call,w])),{placed:h,rest:p}=Aa(i,n),m=w=>w.map(_=>o(Er,{of:_,me:c,readJob:l},_.id)),v=new Set(
n.blocks.filter(w=>w.kind==="tool_use").map(w=>w.call));return o("div",{class:"turn",role:"group","aria-label":"Turn",children:[r.map(w=>o($e,{text:w.text,files:w.
files},w.key)),n.blocks.map(w=>{let _=o(Ba,{session:t,me:c,block:w,turn:n,result:w.call?u.get(w.call):void 0});return o(g,{children:[d&&Ma(w)?o("div",{class:"nu\
mbered "+w.kind,"data-n":w.number,children:_}):_,h.get(w)?.map(P=>o(En,{ask:P,me:c},P.id)),w.kind==="tool_use"&&m(a.filter(P=>P.call===w.call))]},w.number)}),Ja(
n).map(w=>o(Qe,{session:t,call:w,over:On(n)},w.id)),m(a.filter(w=>!v.has(w.call))),p.map(w=>o(En,{ask:w,me:c},w.id)),s.map(w=>o("div",{class:"spoken",children:o(
ue,{text:w.text})},w.id)),o(Xa,{turn:n,told:s.length>0,me:c})]})}};function Ca(e,t){return e.length===t.length&&e.every((n,r)=>n===t[r])}function Aa(e,t){let n=new Map,
r=[];for(let s of e){let i=t.blocks.find(a=>a.kind==="tool_use"&&a.tool===s.tool&&!n.has(a));i?n.set(i,[s]):r.push(s)}return{placed:n,rest:r}}var Ma=e=>e.kind!==
"tool_result"&&(e.kind==="tool_use"||e.kind==="user"||e.text.trim()!==""),On=e=>e.state!=="running"&&e.state!=="parked";function Ja(e){return[...e.calls.values()].
filter(t=>!e.blocks.some(n=>n.kind==="tool_use"&&n.call===t.id))}function Ba({session:e,me:t,block:n,turn:r,result:s}){switch(n.kind){case"user":return o($e,{text:n.
text,name:n.name===t.name?"":n.name,cut:n.cut,children:o(et,{of:n.cause===r.id?"":n.cause,me:t})});case"thinking":return n.text.trim()?o(Oa,{block:n}):null;case"\
text":return n.text.trim()?o("div",{class:"answer",children:o(ue,{text:n.late?"… "+n.text.trimStart():n.text})}):null;case"tool_use":return o(Qe,{session:e,call:r.
calls.get(n.call),use:n,result:s,over:On(r)});default:return null}}function et({of:e,me:t}){return t.may.admin&&e?o("div",{class:"standing",children:o(K,{of:e})}):
null}function Oa({block:e}){return o("details",{class:"thought",children:[o("summary",{children:e.done?"Thought":"Thinking…"}),o(ue,{text:e.text})]})}function $e({
text:e,name:t,files:n=[],cut:r,children:s}){return o("div",{class:"said",children:[t&&o("div",{class:"said-name",children:t}),e&&o("div",{class:"said-text",children:[
e,r&&" … (the log has the rest)"]}),n.length>0&&o("ul",{class:"files","aria-label":"Files",children:n.map((i,a)=>o("li",{class:"file",children:[i.preview&&o("\
img",{src:i.preview,alt:""}),o("span",{children:i.name})," ",o("span",{class:"faint",children:j(i.size)})]},a))}),s]})}function De({said:e,me:t}){return o(g,{children:e.
map(({message:n,spoken:r})=>o("div",{class:"turn",children:[n?o($e,{text:n.text}):r.command&&o($e,{text:"/"+r.command}),r.operator||r.told?o(La,{spoken:r,me:t}):
o(g,{children:[o("div",{class:"spoken",children:o(ue,{text:r.text})}),o(et,{of:r.turn||r.id,me:t})]})]},r.id))})}function La({spoken:{id:e,text:t,operator:n,told:r},
me:s}){return o("div",{class:"said "+(n?"operator":"told"),children:[o("div",{class:"said-name",children:n?o(g,{children:["Operator",n.name&&` (${n.name})`]}):o(
g,{children:["On behalf of ",r?.name||"somebody"]})}),o(ue,{text:t}),(n??r)?.cut&&o("div",{class:"faint",children:"… (the log has the rest)"}),o(et,{of:e,me:s})]})}
function Xa({turn:e,told:t,me:n}){let r=$a(e),s=e.error&&!t&&e.state==="failed"?e.error.message:"";return!r&&!e.usage&&e.compacted===0&&!n.may.admin?null:o("div",
{class:"standing "+e.state,children:[r&&o("span",{class:On(e)?"":"pulse",children:r}),s&&o("span",{children:s}),e.compacted>0&&o("span",{title:"The model now se\
es a summary in place of earlier messages",children:"summarized earlier messages"}),e.usage&&o(Da,{usage:e.usage}),n.may.admin&&o(K,{of:e.id})]})}function $a(e){
switch(e.state){case"done":return"";case"failed":return"Failed";case"cancelled":return"Stopped";case"parked":return"Waiting for an answer"}let t=e.retry;if(!t)return"\
Working…";let n=t.to?` ${t.to}`:"",r=t.after_ms>=1e3?` in ${Math.round(t.after_ms/1e3)} s`:"";return t.to&&t.from&&t.to!==t.from?`${t.from} didn't answer. Try\
ing${n}${r}…`:`Asking the model again${r} (attempt ${t.attempt})…`}function Da({usage:e}){let t=e.priced?` · ${ne(e.microdollars)}`:"";return o("span",{title:`${e.
model}: ${$(e.calls,"model call")}`,children:[C(e.input)," tokens in · ",C(e.output)," out",t]})}function Br({me:e,session:t,title:n,begun:r,onActivity:s}){let[,i]=f(0),[a,l]=f(null),[c,d]=f(!1);E(()=>{let m=new Xt(t,()=>i(v=>v+1),e.may.approve||e.may.agent||
e.may.read||e.may.own,e.may.read||e.may.own,r);return l(m),()=>m.close()},[t]);let u=a?.log.running();E(s,[a?.log.moves]);let h=Ho(t,e),p=!h&&qo(t,e);return o("\
section",{class:"conversation","aria-label":"Conversation",children:[o(Fa,{session:t,title:n,own:h,talk:a,running:u!==void 0,files:c,setFiles:d}),c&&o(nr,{session:t,
close:()=>d(!1)}),o(Ua,{mark:a?.messages.length??0,children:[o(J,{error:a?.away||a?.problem}),a&&!a.log.ready&&!a.away&&o(se,{}),a?.log.ready&&a.log.turns.length===
0&&a.log.spoken.length===0&&a.messages.length===0&&o(re,{children:"No messages yet."}),a?.log.ready&&o(Na,{talk:a,me:e}),a&&o(Ra,{talk:a,me:e})]}),a&&h&&o(bt,{session:t,
running:u!==void 0,onSay:(m,v)=>a.say(m,v),onStop:()=>a.say("/stop",[])},t),a&&p&&o(jo,{session:t,channel:ie(t).channel,onSay:m=>a.sayAsOperator(m)},t),!h&&!p&&
o("p",{class:"reading",children:["This conversation",ie(t).channel&&` on ${ie(t).channel}`," is read-only. Start a new chat to talk to the agent."]}),o("p",{class:"\
away",role:"status",children:u?"The agent is working":"The agent is done"})]})}function Ra({talk:e,me:t}){let{turns:n}=e.log,r=Ze(e.log.asks.values(),u=>u.turn),
s=ir(e.log),i=Ze(s,u=>u.turn),a=new Set(n.map(u=>u.id)),l=e.aside(s,a),c=Ze(l,u=>u.spoken.after),d=e.log.besidesByTurn();return o(g,{children:[o(De,{said:l.filter(
u=>!a.has(u.spoken.after)),me:t}),e.drawn.all().map(u=>o(g,{children:[o(Pe,{session:e.key,turn:u,version:u.version,sent:e.sentOf(u),said:i.get(u.id)??ke,asks:r.
get(u.id)??ke,beside:d.get(u.id)??ke,readJob:e.readJob,me:t}),c.has(u.id)&&o(De,{said:c.get(u.id)??ke,me:t})]},u.id)),e.pending().map(u=>o(Ia,{message:u,talk:e,
me:t},u.key))]})}var ke=[];function Na({talk:e,me:t}){let[n,r]=f(null),[s]=f(()=>new At);return o(g,{children:[e.mayHaveEarlier()&&o("div",{class:"earlier",children:o(
y,{look:"quiet",onPress:()=>e.readEarlier(),onError:r,children:"Show earlier messages"})}),o(J,{error:n}),e.earlier.map(i=>o(Ln,{part:i,talk:e,besides:e.log.besides,
nearby:s,me:t},i[0]?.id))]})}var Ln=class extends ee{state={height:0};at=to();componentDidMount(){this.at.current&&this.props.nearby.add(this.at.current,()=>this.
setState({height:0}),t=>this.setState({height:t}))}componentWillUnmount(){this.at.current&&this.props.nearby.leave(this.at.current)}shouldComponentUpdate(t,{height:n}){
return t.part!==this.props.part||t.besides!==this.props.besides||n!==this.state.height}render(){let{part:t,talk:n,me:r}=this.props,{height:s}=this.state;if(s>0)
return o("div",{ref:this.at,class:"earlier-part",style:{height:`${s}px`}});let i=n.log.besidesByTurn();return o("div",{ref:this.at,class:"earlier-part",children:t.
map(a=>"blocks"in a?o(Pe,{session:n.key,turn:a,version:a.version,sent:ke,said:a.said??ke,asks:a.asks??ke,beside:i.get(a.id)??ke,readJob:n.readJob,me:r},a.id):o(
De,{said:[{spoken:a}],me:r},a.id))})}};function Ia({message:e,talk:t,me:n}){return o("div",{class:"pending "+e.state+(e.operator?" operator":""),children:o($e,{
text:e.text,name:e.operator?"Operator":"",files:e.files,children:e.state==="refused"?o("div",{class:"refused",role:"alert",children:[o("span",{children:["Not se\
nt: ",e.problem]}),o(y,{onPress:()=>{t.send(e)},children:"Send again"}),o(y,{look:"quiet",onPress:()=>t.drop(e),children:"Discard"})]}):o(g,{children:[o("div",{
class:"faint",children:e.state!=="sent"?"Sending…":e.operator?"On its way.":"Sent. Waiting for the agent."}),o(et,{of:e.id,me:n})]})})})}function Fa({session:e,
title:t,own:n,talk:r,running:s,files:i,setFiles:a}){let[l,c]=f(""),{agent:d,channel:u}=ie(e);return o("div",{class:"head",children:[o("a",{class:"back",href:X("\
chat"),"aria-label":"All sessions",children:"‹"}),o("div",{class:"head-title",children:[o("h1",{children:t||we(e)}),o("div",{class:"faint",children:[d," · ",
u,r&&!r.live&&r.log.ready&&!r.away&&o("span",{class:"badge warn",children:" reconnecting…"})]})]}),o(y,{look:"quiet",onPress:()=>a(!i),label:i?"Hide files":"S\
how files",children:"Files"}),n&&r&&o(Ao,{label:"Commands",children:[o(y,{look:"quiet",onPress:()=>c("/new"),children:"Start over…"}),o(y,{look:"quiet",disabled:s,
onPress:()=>c("/undo"),children:"Undo the last changes…"}),o(y,{look:"quiet",disabled:s,onPress:()=>r.say("/compact",[]),children:"Summarize the conversation"})]}),
l==="/new"&&o(fe,{title:"Start over?",confirm:"Start over",onConfirm:()=>r?.say("/new",[]),onClose:()=>c(""),children:"The agent forgets everything said in this\
 session so far. You can still read it."}),l==="/undo"&&o(fe,{title:"Undo the last changes?",confirm:"Undo",danger:!0,onConfirm:()=>r?.say("/undo",[]),onClose:()=>c(
""),children:"This restores the session's files to how they were before the last turn that changed any."})]})}function Ua({children:e,mark:t}){let n=A(null),r=A(
null),s=A(!0),i=A(0),a=A(!1),[l,c]=f(!1),d=()=>{let p=n.current;p&&(p.scrollTop=p.scrollHeight,i.current=p.scrollTop)},u=()=>{s.current=!0,d()};E(u,[t]);let h=p=>{
let m=n.current;if(!m)return;let v=m.scrollHeight-m.scrollTop-m.clientHeight>=60;v?(m.scrollTop<i.current||a.current)&&(s.current=!1):s.current=!0,i.current=m.scrollTop,
c(!s.current),s.current&&(v||p)&&d()};return E(()=>{if(!r.current)return;let p=new ResizeObserver(()=>h(!0));return p.observe(r.current),()=>p.disconnect()},[]),
pe(()=>{a.current=!1,s.current&&d()}),o("div",{class:"scroll-frame",children:[o("div",{ref:n,class:"scroll",onScroll:()=>h(!1),onClick:()=>{a.current=!0},tabIndex:0,
role:"log","aria-label":"Messages","aria-live":"off",children:o("div",{ref:r,class:"column",children:e})}),l&&o("button",{type:"button",class:"button newest",onClick:u,
children:"Latest ↓"})]})}var Wa=500,Ha=4e3,$n=e=>"seen "+e.name;function qa(e){try{return JSON.parse(localStorage.getItem($n(e))??"")}catch{return}}function za(e,t){let n=Object.entries(
t.looks),s=n.splice(0,Math.max(0,n.length-Wa)).reduce((i,[,a])=>Math.max(i,a.at),t.since);try{localStorage.setItem($n(e),JSON.stringify({since:s,looks:Object.fromEntries(
n)}))}catch{}}var Xn=e=>Date.parse(e.updated)||0;function ja(e,t){let n=e.looks[t.key],r=n?.at??e.since;return n?.entries!==t.entries&&Xn(t)>r}function Or(e,t,n){
let[r,s]=f(new Set),[i,a]=f(0),l=A({key:"",until:0});return E(()=>{let c=d=>d.key===$n(e)&&a(u=>u+1);return addEventListener("storage",c),()=>removeEventListener(
"storage",c)},[]),E(()=>()=>{l.current={key:n,until:Date.now()+Ha}},[n]),E(()=>{if(!t)return;let c=qa(e),d=c??{since:t.reduce((p,m)=>Math.max(p,Xn(m)),0),looks:{}},
u=p=>p===n&&!document.hidden||p===l.current.key&&Date.now()<l.current.until,h=t.filter(p=>u(p.key)&&d.looks[p.key]?.entries!==p.entries);for(let p of h)delete d.
looks[p.key],d.looks[p.key]={entries:p.entries,at:Xn(p)};(!c||h.length>0)&&za(e,d),s(new Set(t.filter(p=>ja(d,p)).map(p=>p.key)))},[t,n,i]),r}var jt=60;function Lr({me:e,session:t,title:n,at:r}){let[s,i]=f(null),[a,l]=f(null),c=A(new AbortController),d=async(m,v)=>{let{entries:w,last:_}=await xn(t,m-1,
v,c.current.signal);return{entries:w,from:m,to:v,last:_}},u=()=>{l(null),d(Math.max(1,r-jt),r+jt).then(i,m=>c.current.signal.aborted||l(m))};E(()=>(u(),()=>c.current.
abort()),[]);let h=async m=>{let v=await d(Math.max(1,m.from-jt),m.from-1);i({...m,entries:[...v.entries,...m.entries],from:v.from})},p=async m=>{let v=await d(
m.to+1,m.to+jt);i({...m,entries:[...m.entries,...v.entries],to:v.to,last:v.last})};return o("section",{class:"conversation","aria-label":"Conversation",children:[
o("div",{class:"head",children:[o("a",{class:"back",href:X("chat"),"aria-label":"All sessions",children:"‹"}),o("div",{class:"head-title",children:[o("h1",{children:n||
we(t)}),o("div",{class:"faint",children:"An earlier part of the conversation"})]}),o("a",{class:"button",href:X("chat",t),children:"Latest messages"})]}),o("div",
{class:"scroll-frame",children:o("div",{class:"scroll",tabIndex:0,role:"log","aria-label":"Messages","aria-live":"off",children:o("div",{class:"column",children:[
o(J,{error:a,again:u}),!s&&!a&&o(se,{}),s&&s.from>1&&o("div",{class:"earlier",children:o(y,{look:"quiet",onPress:()=>h(s),onError:l,children:"Show earlier messa\
ges"})}),s&&o(Va,{entries:s.entries,session:t,at:r,me:e}),s&&!s.last&&o("div",{class:"earlier",children:o(y,{look:"quiet",onPress:()=>p(s),onError:l,children:"S\
how later messages"})})]})})})]})}function Va({entries:e,session:t,at:n,me:r}){let s=A(null),i=Tn(e,t,!0);return pe(()=>{let a=[...s.current?.querySelectorAll("\
[data-n]")??[]],l=a.findLast(c=>Number(c.dataset.n)<=n)??a[0];l&&(l.classList.add("sought"),l.tabIndex=-1,l.focus({preventScroll:!0}),l.scrollIntoView({block:"c\
enter"}))},[]),o("div",{ref:s,class:"past",children:[i.length===0&&o(re,{children:"These messages have been erased."}),i.map(a=>"blocks"in a?o(Pe,{session:t,turn:a,
version:a.blocks.length,sent:[],said:a.said??[],asks:a.asks??[],beside:[],readJob:()=>{},me:r,numbered:!0},a.id):o(De,{said:[{spoken:a}],me:r},a.id))]})}var Ka=2,Ya=300;function Xr(e){return e.trim().length>=Ka}function $r({words:e,shown:t}){let[n,r]=f("");return E(()=>{let s=setTimeout(()=>r(e),Ya);return()=>clearTimeout(
s)},[e]),o("section",{class:"found","aria-label":"Messages",children:[o("h2",{children:"What was said"}),n?o(Ga,{words:n,stale:n!==e,shown:t}):o(se,{})]})}function Ga({
words:e,stale:t,shown:n}){let{value:r,error:s,again:i}=B(l=>k(["search"],{q:e,limit:20},l).then(({hits:c})=>({words:e,hits:c})),e),a=!t&&r?.words===e;return o("\
div",{"aria-busy":!a&&!s,children:[o(J,{error:!t&&s,again:i}),!r&&!s&&o(se,{}),a&&r.hits.length===0&&o(re,{children:"No messages found with these words."}),o("u\
l",{children:r?.hits.map(l=>o(Za,{hit:l,current:`${l.session} ${l.n}`===n},`${l.session} ${l.n}`))})]})}function Za({hit:e,current:t}){return o("li",{children:[
o("a",{href:X("chat",e.session,String(e.n)),"aria-current":t?"page":void 0,children:[o("span",{class:"passage",children:e.text}),e.untrusted&&o("span",{class:"b\
adge warn",children:"strangers may have written it"}),o("span",{class:"line faint",children:[o("span",{class:"line-title",children:[Qa(e)," · ",e.title||we(e.session)]}),
o(T,{at:e.at})]})]}),e.link&&xr(e.link)&&o("a",{class:"there",href:e.link,target:"_blank",rel:"noopener noreferrer","aria-label":`Open where it was said: ${e.text.
slice(0,60)}`,children:"Open where it was said"})]})}function Qa(e){return e.kind==="text"?"agent":e.kind==="summary"?"summary":e.tool||e.name||e.person||e.kind}var el=3e4;function Dr(e){let[t,n]=f({running:new Set,waiting:new Set}),r=A(()=>{});return xt(["turn_start","parked","turn_complete","turn_error","ask","ask_res\
olved"],()=>r.current()),E(()=>{let s=new AbortController,i=!1,a=!1;r.current=()=>{s.signal.aborted||(a=i,!i&&(i=!0,tl(e,s.signal).then(n,c=>s.signal.aborted||n(
d=>({...d,error:Je(c)}))).finally(()=>{i=!1,a&&r.current()})))},r.current();let l=setInterval(()=>!document.hidden&&r.current(),el);return()=>{s.abort(),clearInterval(
l)}},[]),{...t,again:()=>r.current()}}async function tl(e,t){let n=k(["sessions"],{order:"desc",limit:200},t),r=e.may.read?k(["status"],{},t):Promise.resolve(void 0),
[{sessions:s},i]=await Promise.all([n,r]);return{sessions:s,running:new Set(i?.turns?.list.map(a=>a.session)),waiting:new Set(i?.asks?.list.map(a=>a.session))}}
function Rr({known:e,unread:t,shown:n,at:r}){let[s,i]=f(""),{sessions:a,error:l}=e,c=s.trim().toLowerCase(),d=a?.filter(u=>!c||`${u.title??""} ${u.key}`.toLowerCase().
includes(c));return o("nav",{class:"sessions","aria-label":"Sessions",children:[o("div",{class:"sessions-top",children:[o("input",{type:"search","aria-label":"F\
ilter sessions and search messages",placeholder:"Search",value:s,onInput:u=>i(u.currentTarget.value)}),o("a",{class:"button main",href:X("chat"),"aria-current":n===
""?"page":void 0,children:"New chat"})]}),o(J,{error:l}),!a&&!l&&o(se,{}),d?.length===0&&o(re,{children:c?"No matching sessions.":"No conversations yet."}),o("u\
l",{children:d?.map(u=>o(nl,{session:u,current:u.key===n,known:e,unread:t.has(u.key)},u.key))}),Xr(s)&&o($r,{words:s.trim(),shown:r>0?`${n} ${r}`:""})]})}function nl({
session:e,current:t,known:n,unread:r}){let{agent:s,channel:i}=ie(e.key),a=n.waiting.has(e.key),l=!a&&n.running.has(e.key);return o("li",{children:o("a",{href:X(
"chat",e.key),"aria-current":t?"page":void 0,children:[o("span",{class:"line",children:[r&&o("span",{class:"unread",role:"img","aria-label":"new"}),o("span",{class:"\
line-title"+(r?" strong":""),children:e.title||we(e.key)}),a&&o("span",{class:"badge warn",children:"waiting"}),l&&o("span",{class:"dot",role:"img","aria-label":"\
working"})]}),o("span",{class:"line faint",children:[o("span",{children:[i,s!=="main"&&` · ${s}`]}),o(T,{at:e.updated})]})]})})}function Nr({me:e,rest:t}){let n=t[0]??"",r=Number(t[1])||0,s=Dr(e),i=Or(e,s.sessions,n),a=A(new Map),l=s.sessions?.find(d=>d.key===n)?.title??"",c=(d,u)=>{let h=Do(
e);a.current.set(h,[Ve(h,d,u)]),Be("chat",h)};return o("div",{class:"chat "+(n?"one":"all"),children:[o(Rr,{known:s,unread:i,shown:n,at:r}),n&&r>0?o(Lr,{me:e,session:n,
title:l,at:r},n+" "+r):n?o(Br,{me:e,session:n,title:l,begun:a.current.get(n)??[],onActivity:s.again},n):o(ol,{mayTalk:e.may.agent,onSay:c})]})}function ol({mayTalk:e,
onSay:t}){return e?o("section",{class:"conversation beginning","aria-label":"New chat",children:[o("div",{class:"hello",children:[o("h1",{children:"What can the\
 agent do for you?"}),o("p",{class:"faint",children:"Your first message starts a new session. Press Enter to send, Shift+Enter for a new line."})]}),o(bt,{session:"",
running:!1,onSay:t,onStop:()=>{}})]}):o("section",{class:"conversation",children:o("p",{class:"empty",children:"Select a session to read it."})})}var rl={builtin:"built in",mcp:"MCP server",skill:"skill"},Ir=160;function Fr({me:e}){let n=B(r=>k(["status"],{brief:!0},r),"").value?.role!=="gateway";return o(
O,{title:"Agents",about:"What the bot has: its agents, their tools and skills, and where they may send messages.",children:[!n&&o("p",{class:"note",children:"A \
gateway serves this page. It runs no turns, so it can't say which tools work where turns run, and it lists no skills."}),o(sl,{works:n}),o(il,{}),e.may.admin&&o(
"p",{class:"aside",children:["To accept new tools of MCP servers, see ",o("a",{href:X("mcp"),children:"MCP servers"}),"."]}),e.may.admin&&n&&o(al,{}),o(ll,{})]})}
function sl({works:e}){let t=B(n=>k(["agents"],{},n),"");return o(V,{read:t,rows:n=>n.agents,label:"Agents",id:n=>n.name,empty:"There are no agents.",columns:[{
title:"Agent",cell:n=>o(g,{children:[o("strong",{children:o(S,{of:n.name})})," ",e&&!n.answers&&o(M,{look:"bad",children:"no model"})]})},{title:"Models",cell:n=>o(
Re,{of:n.models.map(r=>r.name??r.setting)})},{title:"Capabilities",cell:n=>n.capabilities.length>0?n.capabilities.join(", "):"none"},{title:"Tools",cell:n=>C(n.
tools.length),number:!0},{title:"May message",cell:n=>o(Re,{of:n.may_message})},{title:"Cap per day",cell:n=>n.microdollars_day?ne(n.microdollars_day):"none",number:!0}]})}
function Re({of:e}){return e.length>0?o(S,{of:e.join(", ")}):o(g,{children:"none"})}function il(){let[e,t]=f(""),n=B(r=>k(["tools"],{},r),"");return o(R,{title:"\
Tools",wide:!0,children:[o(wt,{label:"Find tools",value:e,set:t}),o(V,{read:n,rows:r=>r.tools.filter(s=>yt(e,s.name,s.description,s.permission??"",...s.agents)),
label:"Tools that agents have; calls are those in this process since it started",id:r=>r.name,empty:e?"No matching tools.":"No agent has any tools.",columns:[{title:"\
Tool",cell:r=>o(g,{children:[o("code",{children:b(r.name)}),o("br",{}),o("span",{class:"aside",children:rl[r.origin]??r.origin})]})},{title:"Needs",cell:r=>r.permission??
"nothing"},{title:"Agents",cell:r=>o(Re,{of:r.agents})},{title:"Calls",cell:r=>C(r.calls),number:!0},{title:"Failed",cell:r=>C(r.failed),number:!0},{title:"Desc\
ription",cell:r=>o(Ur,{of:r.description})}]})]})}function Ur({of:e}){let t=b(e);return t.length<=Ir?o("span",{class:"saying",children:t}):o("details",{children:[
o("summary",{children:[t.slice(0,Ir),"…"]}),o("span",{class:"saying",children:t})]})}function al(){let e=B(t=>k(["skills"],{},t),"");return o(R,{title:"Skills",
wide:!0,children:o(V,{read:e,rows:t=>t.skills,label:"Your skills",id:t=>t.name,empty:"You have no skills. See docs/skills.md to add one.",columns:[{title:"Skill",
cell:t=>o(g,{children:[o("strong",{children:o(S,{of:t.name})})," ",t.trusted&&o(M,{look:"good",children:"trusted"})]})},{title:"Agents",cell:t=>o(Re,{of:t.agents})},
{title:"Tools",cell:t=>o(Re,{of:t.tools})},{title:"Folder",cell:t=>o("code",{class:"name",children:b(t.folder)})},{title:"Description",cell:t=>o(Ur,{of:t.description})}]})})}
function ll(){let e=B(t=>k(["targets"],{},t),"");return o(R,{title:"Targets",wide:!0,children:o(V,{read:e,rows:t=>t.targets,label:"Targets of messages",id:t=>t.
name,empty:"No targets are configured. A target is a name for one or more addresses.",columns:[{title:"Target",cell:t=>o("strong",{children:o(S,{of:t.name})})},
{title:"Addresses",cell:t=>o(Re,{of:t.to})}]})})}function Wr({decided:e}){let t=B(n=>k(["audit"],{kind:"approval",order:"desc",limit:20},n),String(e));return o(R,{title:"Recent decisions",wide:!0,children:o(V,
{read:t,rows:n=>n.records,label:"Decisions made on this page and by programs, newest first",id:n=>String(n.id),empty:"No decisions here yet. For decisions that \
people made in chats, see the tool calls in the audit.",columns:[{title:"When",cell:n=>o(T,{at:n.at})},{title:"Who",cell:n=>o(S,{of:n.by})},{title:"Decision",cell:n=>o(
M,{look:n.result==="denied"?"bad":"good",children:b(n.result)})},{title:"What",cell:n=>o(g,{children:[n.tool&&o("code",{children:b(n.tool)})," ",o("span",{class:"\
aside",children:o(S,{of:n.detail})})]})},{title:"Session",cell:n=>o(F,{of:n.session})}]})})}var cl=40;function Hr({me:e,rest:t}){let n=t[0]??"",r=Q(),[s,i]=f(0),a=N(d=>k(["asks"],{},d),"",20,["ask","ask_resolved"]),l=a.value?.asks,c=d=>{r.say(dl(d)),i(
u=>u+1),a.again()};return o(O,{title:"Approvals",done:r,about:"What turns are waiting for. Nothing runs until someone decides. Opening a link to a request never\
 decides it.",children:[o(L,{...a}),l&&n&&!l.some(d=>d.id===n)&&o("p",{class:"note",children:["The request ",o("code",{children:b(n)})," isn't open. Someone dec\
ided it, it expired, or you can't see it."]}),l?.length===0&&o(re,{children:"No open requests. When a tool call needs approval or the agent has a question, you'\
ll see it here."}),l?.map(d=>o(ul,{ask:d,me:e,named:d.id===n,done:c},d.id)),e.may.admin&&o(Wr,{decided:s})]})}function dl(e){if(e.kind==="question")return"Answe\
r sent. The agent continues now.";let t=b(e.tool??"the call");return e.answer==="deny"?`You denied ${t}. The agent continues without it.`:`You approved ${t}${e.
answer==="session"?" for this session":""}. It's running now.`}function ul({ask:e,me:t,named:n,done:r}){let s=A(null);E(()=>{n&&(s.current?.scrollIntoView({block:"\
start"}),s.current?.focus({preventScroll:!0}))},[n]);let i="request-"+e.id;return o("article",{ref:s,class:"request"+(n?" named":""),"aria-labelledby":i,tabIndex:-1,
children:[o("h2",{id:i,children:o(Rt,{ask:e})}),o("p",{class:"aside",children:["For ",o(S,{of:e.person})," in ",o(F,{of:e.session}),"; asked ",o(T,{at:e.at}),",\
 expires ",o(T,{at:e.expires})," ",t.may.admin&&o(K,{of:e.turn})]}),e.to&&e.to.length>0&&o("p",{class:"aside",children:["Also asked in ",e.to.map(b).join(", "),
"."]}),o(Nt,{ask:e,me:t,most:cl,onDone:r})]})}var ml=["turn","refusal","tool","pairing","export","replay","forget","job","approval","schedule","operator","memory","sign_in","judgement"];function qr({rest:e}){
let[t,n]=f({kind:"",session:e[0]??"",person:""}),[r,s]=f([]),i=r.at(-1),a=B(c=>k(["audit"],{...t,order:"desc",limit:50,after:i},c),JSON.stringify([t,i]));return o(
O,{title:"Audit",about:"What happened, newest first.",children:[o(pl,{filter:t,choose:c=>{n(c),s([])},refresh:a.again}),o(L,{...a}),a.value&&o(fl,{records:a.value.
records}),a.value&&o("div",{class:"after",children:[r.length>0&&o(y,{onPress:()=>s(r.slice(0,-1)),children:"Newer"}),a.value.next!==void 0&&o(y,{onPress:()=>s([
...r,a.value?.next??0]),children:"Older"})]})]})}function pl({filter:e,choose:t,refresh:n}){let[r,s]=f(e.session),[i,a]=f(e.person),l=()=>{let c={...e,session:r.
trim(),person:i.trim()};JSON.stringify(c)===JSON.stringify(e)?n():t(c)};return o("form",{class:"filters",onSubmit:c=>{c.preventDefault(),l()},children:[o("label",
{children:["Kind",o("select",{value:e.kind,onChange:c=>t({...e,kind:c.currentTarget.value}),children:[o("option",{value:"",children:"All"}),ml.map(c=>o("option",
{value:c,children:c.replace("_"," ")},c))]})]}),o("label",{children:["Session",o("input",{value:r,placeholder:"main:telegram:42",onInput:c=>s(c.currentTarget.value)})]}),
o("label",{children:["Person",o("input",{value:i,placeholder:"telegram:42",onInput:c=>a(c.currentTarget.value)})]}),o("button",{class:"button",type:"submit",children:"\
Apply"})]})}function fl({records:e}){return o(z,{label:"What happened, newest first",rows:e,id:t=>String(t.id),empty:"No matching records. The audit lists what \
agents, people and programs did.",columns:[{title:"When",cell:t=>o(T,{at:t.at})},{title:"Kind",cell:t=>t.kind.replace("_"," ")},{title:"Who",cell:t=>o(S,{of:t.by})},
{title:"Where",cell:t=>t.session?o(F,{of:t.session}):o(S,{of:t.address})},{title:"Result",cell:t=>o(bl,{of:t})},{title:"Details",cell:t=>o(vl,{of:t})}]})}var gl=new Set(
["ok","done","answered","admitted","replayed","signed in","read","erased","changed","offered","login","accepted","approved","approved for the session"]),hl=new Set(
["failed","given_up","timeout","permission_denied","denied"]);function bl({of:e}){let t=gl.has(e.result)?"good":hl.has(e.result)?"bad":void 0;return o(g,{children:[
o(M,{look:t,children:[b(e.result),e.exit_code!==void 0&&` (${e.exit_code})`]})," ",(e.kind==="tool"||e.kind==="turn"||e.kind==="job"||e.kind==="judgement")&&o("\
span",{class:"aside",children:Z(e.elapsed_ms)})]})}function vl({of:e}){let t=e.used?[wl(e.used),e.detail].filter(Boolean).join("; "):e.kind==="refusal"?yl(e):e.
kind==="judgement"?e.verdict:e.detail,n=e.turn??e.messages?.at(-1);return o(g,{children:[e.tool&&o("code",{children:b(e.tool)})," ",t&&o(S,{of:t})," ",n&&o(K,{of:n}),
e.arguments!==void 0&&e.arguments!==null&&o("details",{children:[o("summary",{children:"Arguments"}),o(_t,{of:e.arguments,label:"Arguments"})]})]})}function wl(e){
let t=[e.model,$(e.model_calls,"model call"),$(e.calls,"tool call"),C(e.input)+" tokens in",C(e.output)+" out"];return e.microdollars!==void 0&&t.push(ne(e.microdollars)),
t.filter(Boolean).join(", ")}function yl(e){return $(e.count??e.messages?.length??1,"message")+(e.detail?"; "+e.detail:"")}function zr({me:e}){let t=Q(),n=B(s=>k(["sign-ins"],{},s),""),r=oe(s=>({title:s.current?"Sign out here?":"Sign out this browser?",confirm:"Sign out browser",text:o(
g,{children:[Vt(s.device)," (",o(S,{of:s.caller}),") will need to sign in again. ",s.current&&"That's the browser you're using now."]}),act:async()=>{await G(["\
sign-ins",s.id]),t.say(`You signed out ${Vt(s.device)} (${b(s.caller)}).`),n.again()}}));return o(O,{title:"Browsers",done:t,about:e.may.admin?"Browsers that ar\
e signed in to this page.":"Browsers that are signed in to this page with your token.",children:[o(V,{read:n,rows:s=>s.sign_ins,label:"Signed-in browsers, most \
recently used first",id:s=>s.id,empty:"No browsers are signed in.",columns:[{title:"Browser",cell:s=>o(g,{children:[o("span",{title:b(s.device),children:Vt(s.device)}),
" ",s.current&&o(M,{look:"good",children:"this browser"})]})},{title:"Who",cell:s=>o(S,{of:s.caller})},{title:"Signed in",cell:s=>o(T,{at:s.began})},{title:"Las\
t used",cell:s=>o(T,{at:s.seen})},{title:"Actions",cell:s=>o(y,{look:"danger",onPress:()=>r.ask(s),label:`Sign out ${Vt(s.device)} (${s.caller})`,children:"Sign\
 out…"})}]}),r.dialog]})}function Vt(e){let t=s=>s.find(([,i])=>i.test(e))?.[0],n=t([["Edge",/Edg/],["Opera",/OPR/],["Firefox",/Firefox|FxiOS/],["Chrome",/Chrome|CriOS/],
["Safari",/Safari/]]),r=t([["Android",/Android/],["iPhone",/iPhone/],["iPad",/iPad/],["Windows",/Windows/],["macOS",/Mac OS X/],["Linux",/Linux/]]);return n?r?`${n}\
 on ${r}`:n:b(e)||"Unknown browser"}function Vr(){let[e,t]=f(""),[n,r]=f(!1),s=B(a=>k(["config"],{},a),""),i=a=>(!n||a.from!=="default")&&yt(e,a.key,jr(a),a.from);return o(O,{title:"Configuration",
about:"The settings in force. To change one, edit the file and send SIGHUP to the server, or restart it.",children:[s.value&&o("p",{class:"aside",children:["Fil\
e: ",o(S,{of:s.value.file||"none"}),o("br",{}),"Home: ",o(S,{of:s.value.home})]}),s.value?.notices?.map(a=>o("p",{class:"note warn",children:b(a)},a)),o(wt,{label:"\
Find settings",value:e,set:t,children:o("label",{class:"choice",children:[o("input",{type:"checkbox",checked:n,onChange:a=>r(a.currentTarget.checked)})," Hide d\
efaults"]})}),o(V,{read:s,rows:a=>a.settings.filter(i),label:"Settings in force; secrets are ***",id:a=>a.key,empty:"No matching settings.",columns:[{title:"Set\
ting",cell:a=>o(g,{children:[o("code",{class:"name",children:b(a.key)})," ",a.no_effect&&o(M,{look:"warn",children:"no effect yet"})]})},{title:"Value",cell:a=>o(
"code",{class:"name",children:b(jr(a))})},{title:"From",cell:a=>a.from==="default"?o("span",{class:"aside",children:"default"}):o(S,{of:a.from})}]})]})}function jr(e){
return JSON.stringify(e.value)}var kl=100;function Kr({me:e}){let t=Q(),[n,r]=f(""),[s,i]=f(""),[a,l]=f(null),c=N(v=>k(["dead-letters"],{topic:n,after:s,order:"desc",limit:kl},v),n+" "+s,30,[
"dead_letter"]),d=_l(e.may.read),u=v=>{r(v),i("")},h=v=>{t.say(v),l(null),c.again()},p=async v=>{let{id:w}=await H(["dead-letters",v.topic,v.id,"replay"]);h(`Re\
played as ${w}.`)},m=oe(v=>({title:"Forget this message?",confirm:"Forget it",text:o(g,{children:["This deletes the message ",o(S,{of:v.id})," for ",o(S,{of:v.key}),
". You can't undo it."]}),act:async()=>{await G(["dead-letters",v.topic,v.id]),h(`Forgot the dead letter ${v.id}.`)}}));return o(O,{title:"Dead letters",done:t,
about:"Messages that couldn't be delivered or answered after several tries. Once you've fixed the cause, you can replay them.",children:[o(Sl,{topics:d,chosen:n,
choose:u}),o(L,{...c}),c.value&&o(xl,{letters:c.value.letters,look:l,replay:p,drop:m.ask,fail:t.fail}),c.value&&o(Tl,{page:c.value,topic:n,after:s,go:i}),a&&o(El,
{of:a,close:()=>l(null)},a.topic+" "+a.id),m.dialog]})}function _l(e){return(B(async n=>e?(await k(["status"],{brief:!0},n)).topics:[],"").value??[]).filter(n=>n.
dead>0)}function Sl({topics:e,chosen:t,choose:n}){return e.length<2&&!t?null:o("div",{class:"filters",children:o("label",{children:["Topic",o("select",{value:t,
onChange:r=>n(r.currentTarget.value),children:[o("option",{value:"",children:"All"}),e.map(r=>o("option",{value:r.topic,children:[r.topic," (",C(r.dead),")"]},r.
topic))]})]})})}function xl({letters:e,look:t,replay:n,drop:r,fail:s}){return o(z,{label:"Dead letters, newest first within each topic",rows:e,id:i=>i.topic+" "+
i.id,empty:"No dead letters. Messages that can't be delivered or answered after several tries show up here.",columns:[{title:"Gave up",cell:i=>o(T,{at:i.buried_at})},
{title:"For",cell:i=>o(g,{children:[o(S,{of:i.key}),o("br",{}),o("span",{class:"aside",children:o(S,{of:i.topic})})]})},{title:"Reason",cell:i=>b(i.reason)},{title:"\
Attempts",cell:i=>C(i.attempts),number:!0},{title:"Size",cell:i=>j(i.bytes),number:!0},{title:"Message",cell:i=>o("div",{class:"rowactions",children:[o(y,{onPress:()=>t(
i),label:`View ${i.id}`,children:"View"}),o(y,{onPress:()=>n(i),onError:s,label:`Replay ${i.id}`,children:"Replay"}),o(y,{look:"danger",onPress:()=>r(i),label:`\
Forget ${i.id}`,children:"Forget…"})]})}]})}function Tl({page:e,topic:t,after:n,go:r}){return e.more&&!t?o("p",{class:"none after",children:"There are more. C\
hoose a topic to see them all."}):o(Le,{after:n,next:e.next,go:r})}function El({of:e,close:t}){let n=B(r=>k(["dead-letters",e.topic,e.id],{},r),e.topic+" "+e.id);
return o(Oe,{title:"Message",close:t,children:[o("p",{class:"aside",children:[o(S,{of:e.id})," ",o(K,{of:e.id})]}),o(L,{...n}),n.value&&o(_t,{of:n.value.message??
"This message isn't JSON, so the page can't show it.",label:"The message"})]})}var Pl=1e3;function Gr(){let e=B(a=>k(["doctor"],{},a),""),t=e.value,[n,r]=f(!1),s=n||(t?.running??!1);E(()=>{if(r(!1),!t?.running)return;let a=setTimeout(e.again,
Pl);return()=>clearTimeout(a)},[t,e.error]);let i=()=>{r(!0),e.again()};return o(O,{title:"Doctor",about:"What the server finds when it checks its settings, its\
 data, the model and the platforms, like parley doctor. This takes a few seconds, and sends the model a short request.",children:[o("div",{class:"filters",children:o(
Cl,{checkup:t,running:s,again:i})}),o(J,{error:e.error,again:i}),o("p",{class:"aside",children:[o("span",{role:"status",children:s||!t&&!e.error?"Checking…":t&&
Al(t.findings)})," ",t?.at&&o(g,{children:["Checked ",o(T,{at:t.at}),", in ",Z(t.took_ms),"."]})]}),t?.at&&o(Jl,{of:t.findings})]})}function Cl({checkup:e,running:t,
again:n}){let[,r]=f(0),s=e?.again?Math.max(0,new Date(e.again).getTime()-Date.now()):0;return E(()=>{if(s===0)return;let i=setTimeout(()=>r(a=>a+1),Math.min(s,1e3));
return()=>clearTimeout(i)}),o(g,{children:[o(y,{look:"main",disabled:!e||t||s>0,onPress:n,children:"Check again"}),s>0&&!t&&o("span",{class:"aside",children:["i\
n ",Z(Math.ceil(s/1e3)*1e3)]})]})}function Al(e){let t=e.filter(n=>n.state==="wrong").length;return t>0?$(t,"thing")+(t===1?" needs":" need")+" a change.":"Ever\
ything works."}var Ml={wrong:"bad",note:"warn",ok:"good"},Yr=["wrong","note","ok"];function Jl({of:e}){let t=e.map((n,r)=>({...n,n:r})).sort((n,r)=>Yr.indexOf(n.
state)-Yr.indexOf(r.state)||n.n-r.n);return o(z,{label:"What was checked, problems first",rows:t,id:n=>String(n.n),empty:"Nothing was checked.",columns:[{title:"\
Part",cell:n=>o("strong",{class:"name part",children:b(n.part)})},{title:"State",cell:n=>o(M,{look:Ml[n.state],children:n.state})},{title:"Finding",cell:n=>o("s\
pan",{class:"name",children:b(n.detail)})},{title:"What to do",cell:n=>n.remedy&&o("span",{class:"name",children:b(n.remedy)})}]})}var Bl=100,Ol={ok:"good",failed:"bad",unknown:"bad"};function Zr({me:e,rest:t}){let n=Q(),[r,s]=f(t[0]??""),[i,a]=f(null),l=N(d=>k(["jobs"],{session:r,limit:Bl},
d),r,15,["job"]),c=oe(d=>({title:"Stop this job?",confirm:"Stop job",text:o(Ft,{of:d,session:d.session}),act:async()=>{await G(["jobs",d.id]),n.say(`Asked ${d.id}\
 to stop.`),l.again()}}));return o(O,{title:"Jobs",done:n,about:"Commands that agents run in the background, and those that ended in the last 30 days.",children:[
o(Ll,{session:r,choose:s}),o(L,{...l}),l.value&&o(Xl,{jobs:l.value.jobs,look:a,stop:e.may.admin?c.ask:void 0}),l.value?.more&&o("p",{class:"none after",children:"\
There are more. Choose a session to see its jobs."}),i&&o(Dl,{of:i,close:()=>a(null)},i.id),c.dialog]})}function Ll({session:e,choose:t}){let[n,r]=f(e);return o(
"form",{class:"filters",onSubmit:s=>{s.preventDefault(),t(n.trim())},children:[o("label",{class:"long",children:["Session",o("input",{value:n,placeholder:"main:\
telegram:42",spellcheck:!1,onInput:s=>r(s.currentTarget.value)})]}),o("button",{class:"button",type:"submit",children:"Apply"})]})}function Xl({jobs:e,look:t,stop:n}){
return o(z,{label:"Jobs: running ones first, then newest first",rows:e,id:r=>r.id,empty:"No jobs. A command that an agent runs in the background shows up here.",
columns:[{title:"State",cell:r=>o($l,{of:r})},{title:"Command",cell:r=>o("code",{class:"name",children:b(r.command)})},{title:"For",cell:r=>o(g,{children:[o(S,{
of:r.person}),o("br",{}),o(F,{of:r.session})]})},{title:"Started",cell:r=>o(T,{at:r.started})},{title:"Printed",cell:r=>j(r.printed),number:!0},{title:"Actions",
cell:r=>o("div",{class:"rowactions",children:[o(y,{onPress:()=>t(r),label:`Output of ${r.id}`,children:"Output"}),n&&r.state==="running"&&!r.stopping&&o(y,{look:"\
danger",onPress:()=>n(r),label:`Stop ${r.id}`,children:"Stop…"})]})}]})}function $l({of:e}){let[t,n]=It(e);return o(g,{children:[o(M,{look:Ol[t],children:n}),
o("br",{}),e.state==="running"&&o("span",{class:"aside",children:["for ",o(de,{at:e.started}),"; times out ",o(T,{at:e.deadline})]}),e.ended&&o("span",{class:"a\
side",children:o(T,{at:e.ended})}),e.detail&&o("span",{class:"aside",children:[o("br",{}),b(e.detail)]})]})}function Dl({of:e,close:t}){let n=N(s=>k(["jobs",e.id],
{},s),e.id,5,["job","job_output"]),r=n.value?.output??"";return o(Oe,{title:"Output",close:t,children:[o("p",{class:"aside",children:o("code",{class:"name",children:b(
e.command)})}),o(L,{...n}),n.value&&!r&&o("p",{class:"none",children:["It printed nothing",n.value.state==="running"&&" yet","."]}),n.value&&r&&o(Ye,{of:r,label:`\
Output of ${e.id}`,above:`Printed ${j(n.value.printed)}; this is the end`})]})}function Qr(e,t){let n=e===void 0?[]:e.split(`
`),r=t.split(`
`),s=0;for(;s<n.length&&s<r.length&&n[s]===r[s];)s++;let i=0;for(;i<n.length-s&&i<r.length-s&&n.at(-1-i)===r.at(-1-i);)i++;let a=l=>({mark:" ",text:l});return[...r.
slice(0,s).map(a),...Rl(n.slice(s,n.length-i),r.slice(s,r.length-i)),...r.slice(r.length-i).map(a)]}function Rl(e,t){let n=l=>({mark:"-",text:l}),r=l=>({mark:"+",
text:l});if(e.length===0||t.length===0||e.length*t.length>4e6)return[...e.map(n),...t.map(r)];let s=Array.from({length:e.length+1},()=>new Uint32Array(t.length+
1)),i=(l,c)=>s[l]?.[c]??0;for(let l=e.length-1;l>=0;l--){let c=s[l];if(c)for(let d=t.length-1;d>=0;d--)c[d]=e[l]===t[d]?i(l+1,d+1)+1:Math.max(i(l+1,d),i(l,d+1))}
let a=[];for(let l=0,c=0;l<e.length||c<t.length;){let[d,u]=[e[l],t[c]];d!==void 0&&d===u?(a.push({mark:" ",text:d}),l++,c++):d!==void 0&&(u===void 0||i(l+1,c)>=
i(l,c+1))?(a.push(n(d)),l++):u!==void 0&&(a.push(r(u)),c++)}return a}function Rn(e,t){return H(["mcp",e,"accept"],{tool:t.name,digest:t.digest})}function es({server:e,tool:t,changed:n,renew:r,outcome:s,done:i}){let a=b(t.name),l=async()=>{
await Rn(e,t),s.say(`Accepted ${a}.`),i()};return o("section",{class:"request","aria-label":`${t.was?"Changed":"New"} tool ${a} of ${e}`,children:[o("div",{class:"\
between",children:[o("strong",{children:o("code",{children:a})}),o(M,{look:"warn",children:t.was?"changed":"new"})]}),o(Kt,{title:"Description",of:`${a} of ${e}`,
before:t.was?.description,now:t.description,isNew:!t.was}),o(Kt,{title:"Arguments",of:`${a} of ${e}`,before:t.was&&Dn(t.was),now:Dn(t),isNew:!t.was}),n?o("p",{class:"\
note warn",children:["The tool changed again while you were looking. ",o(y,{onPress:r,label:`Show ${a} again`,children:"Show it again"})]}):o(y,{look:"main",onPress:l,
onError:s.fail,label:`Accept ${a}`,children:"Accept"})]})}function Dn(e){return JSON.stringify(e.schema,null,2)}function Kt({title:e,of:t,before:n,now:r,isNew:s}){
let i={" ":"","+":"plus","-":"minus"},a=Qr(n===void 0?void 0:b(n),b(r)),l=a.some(c=>c.mark!==" ");return o("div",{class:"preview",children:[o("h3",{children:[e,
!s&&!l&&" (unchanged)"]}),o("pre",{tabIndex:0,role:"region","aria-label":`${e}: ${t}`,children:a.map((c,d)=>o("span",{class:"preview-line "+(s?"":i[c.mark]),children:(s?
"":c.mark+" ")+c.text+`
`},d))})]})}function ts({server:e,tools:t}){return o("ul",{class:"items",children:t.map(n=>o("li",{children:o("details",{children:[o("summary",{children:o("code",
{children:o(S,{of:n.name})})}),o(Kt,{title:"Description",of:`${b(n.name)} of ${e}`,now:n.description,isNew:!0}),o(Kt,{title:"Arguments",of:`${b(n.name)} of ${e}`,
now:Dn(n),isNew:!0})]})},n.name))})}var Nl=2e3;function ns({server:e,done:t}){let[n,r]=f(null),[s,i]=f(null),a=async()=>{i(null),r(await H(["mcp",e,"login"]))},l=()=>{r(null),t()};return E(()=>{if(!n)
return;let c=new AbortController,d=async()=>{if(!document.hidden)try{(await k(["mcp",e,"login"],{id:n.id},c.signal)).done?l():Date.now()>Date.parse(n.until)&&(r(
null),i(new Error("The link has expired. Sign in again.")))}catch(h){c.signal.aborted||i(h)}},u=setInterval(()=>{d()},Nl);return()=>{c.abort(),clearInterval(u)}},
[n]),o(g,{children:[o(J,{error:s}),n?o(Il,{begun:n,server:e,done:l}):o(y,{onPress:a,onError:i,label:`Sign in to ${e}`,children:"Sign in…"})]})}function Il({begun:e,
server:t,done:n}){let[r,s]=f(""),[i,a]=f(null),l=ce(),c=async()=>{await H(["mcp",t,"login"],{address:r.trim()}),n()},d=/^https?:\/\//i.test(e.url);return o("div",
{class:"note",children:o("div",{ref:l,tabIndex:-1,class:"opened",children:[o("p",{children:[d?o("a",{href:e.url,target:"_blank",rel:"noopener noreferrer",children:"\
Open the sign-in page"}):b(e.url)," The link expires ",o(T,{at:e.until}),"."]}),o("p",{children:["Your browser ends up at ",o("code",{children:b(e.ends)}),". If\
 it can't open that page, paste its address here."]}),o(J,{error:i}),o("form",{class:"filters",onSubmit:u=>{u.preventDefault(),r.trim()&&c().catch(a)},children:[
o("label",{class:"long",children:["Address of the last page",o("input",{value:r,autocomplete:"off",spellcheck:!1,onInput:u=>s(u.currentTarget.value)})]}),o(y,{disabled:!r.
trim(),onPress:c,onError:a,children:"Finish"})]})]})})}var Fl={up:"up",down:"down",sign_in:"sign-in needed",untried:"not tried here"},Ul={up:"good",down:"bad",sign_in:"warn",untried:void 0};function os(){let e=Q(),t=N(
r=>k(["mcp"],{},r),"",15),n=t.value?.servers;return o(O,{title:"MCP servers",done:e,about:"Programs and services whose tools agents use. Agents can't use a new \
or changed tool until you accept it.",children:[o(L,{...t}),n?.length===0&&o(re,{children:"No MCP servers are configured. See docs/tools.md to add one."}),n?.map(
r=>o(Wl,{of:r,outcome:e,again:t.again},r.name))]})}function Wl({of:e,outcome:t,again:n}){let[r,s]=f(null),i="server-"+e.name,a=async()=>{let c=await H(["mcp",e.
name,"test"]);s(c),c.up?t.say(`${e.name} lists ${$(c.listed,"tool")}, after ${Z(c.ms)}.`):t.fail(new Error(`${e.name} can't be reached: ${b(c.error??"")}`)),n()},
l=()=>{t.say(`Signed in to ${e.name}.`),n()};return o("article",{class:"story","aria-labelledby":i,children:[o("h2",{id:i,children:[o(S,{of:e.name})," ",o(M,{look:Ul[e.
state],children:Fl[e.state]})]}),o("p",{class:"aside",children:[e.agents.length>0?`Used by ${e.agents.join(", ")}`:"No agent uses it",e.state==="untried"&&". Th\
is process hasn't tried to reach it; in a fleet, workers do"]}),e.error&&o("p",{class:"trouble",children:b(e.error)}),o("div",{class:"rowactions",children:[o(y,
{onPress:a,onError:t.fail,label:`Test ${e.name}`,children:"Test"}),e.sign_in&&e.state!=="up"&&o(ns,{server:e.name,done:l},e.state)]}),r&&r.unusable.length>0&&o(
"ul",{class:"hints",children:r.unusable.map(c=>o("li",{children:[$(c.tools,"tool")," can't be used: ",c.reason," ",c.names&&o(S,{of:`(${c.names.join(", ")})`})]},
c.reason))}),o(Hl,{server:e,outcome:t,again:n}),e.tools.length>0&&o("details",{children:[o("summary",{children:[$(e.tools.length,"tool")," in use"]}),o(ts,{server:e.
name,tools:e.tools})]})]})}function Hl({server:e,outcome:t,again:n}){let[,r]=f(0),s=A(new Map),i=new Map(e.aside.map(c=>[c.name,s.current.get(c.name)??c]));s.current=
i;let a=c=>{i.set(c.name,c),r(d=>d+1)},l=oe(c=>({title:`Accept ${$(c.length,"tool")}?`,confirm:"Accept all",text:o(g,{children:["Agents read what these tools sa\
y about themselves as if you had said it: ",o(S,{of:c.map(d=>d.name).join(", ")}),". Accept them only if you've read it."]}),act:async()=>{try{for(let d of c)await Rn(
e.name,d);t.say(`Accepted ${$(c.length,"tool")} of ${e.name}.`)}finally{n()}}}));return e.aside.length===0?null:o(g,{children:[o("div",{class:"between",children:[
o("h3",{children:[$(e.aside.length,"tool")," to accept"]}),e.aside.length>1&&o(y,{onPress:()=>l.ask([...i.values()]),label:`Accept all of ${e.name}`,children:"A\
ccept all…"})]}),e.aside.map(c=>o(es,{server:e.name,tool:i.get(c.name)??c,changed:i.get(c.name)?.digest!==c.digest,renew:()=>a(c),outcome:t,done:n},c.name)),l.
dialog]})}var tt={session:"Conversation",person:"Person",agent:"Agent"},ql={session:"main:telegram:42",person:"telegram:42",agent:"main"},rs=["turn_complete","turn_error"];
function ss({rest:e}){let t=Q(),[n,r]=f(""),[s="",i=""]=e,a=N(l=>k(["memory"],{after:n,limit:100},l),n,30,[...rs]);return o(O,{title:"Memory",done:t,about:"What\
 agents remember for all conversations, and about people. Agents read this with every message it applies to.",children:[o(zl,{scope:s,owner:i},s+" "+i),i&&o(jl,
{scope:s,owner:i,outcome:t,changed:a.again},s+" "+i),o(R,{title:"All memories",wide:!0,children:[o(V,{read:a,rows:l=>l.memories,label:"Memories of agents and ab\
out people",id:l=>l.scope+" "+l.owner,empty:"Agents remember nothing about people, and nothing for all conversations.",columns:[{title:"Whose",cell:l=>o(g,{children:[
o("strong",{children:o(S,{of:l.owner})}),o("br",{}),o("span",{class:"aside",children:is(l.scope).toLowerCase()})]})},{title:"Size",cell:l=>j(l.bytes),number:!0},
{title:"From strangers",cell:l=>l.untrusted?o(M,{look:"warn",children:"maybe"}):"no"},{title:"Changed",cell:l=>o(T,{at:l.changed})},{title:"Actions",cell:l=>o("\
a",{href:X("memory",l.scope,l.owner),"aria-label":`View the memory of ${l.owner}`,children:"View"})}]}),o(Le,{after:n,next:a.value?.next,go:r})]})]})}function is(e){
return e in tt?tt[e]:e}function zl({scope:e,owner:t}){let[n,r]=f(e in tt?e:"session"),[s,i]=f(t),a=()=>Be("memory",n,s.trim());return o("form",{class:"filters",
onSubmit:l=>{l.preventDefault(),s.trim()&&a()},children:[o("label",{children:["Memory of",o("select",{value:n,onChange:l=>r(l.currentTarget.value),children:Object.
entries(tt).map(([l,c])=>o("option",{value:l,children:c},l))})]}),o("label",{class:"long",children:[tt[n],o("input",{value:s,placeholder:ql[n],spellcheck:!1,onInput:l=>i(
l.currentTarget.value)})]}),o(y,{look:"main",disabled:!s.trim(),onPress:a,children:"Show"})]})}function jl({scope:e,owner:t,outcome:n,changed:r}){let s=N(h=>k([
"memory",e,t],{},h),e+" "+t,30,[...rs]),[i,a]=f(null),l=()=>{s.again(),r()},c=h=>{n.say(h),a(null),l()},d=oe(h=>({title:"Erase this memory?",confirm:"Erase it",
text:o(g,{children:["This erases everything in the memory of ",o(S,{of:t}),". You can't undo it."]}),act:async()=>{await G(["memory",e,t],h.version).catch(p=>as(
p,l)),c(`Erased the memory of ${b(t)}.`)}})),u=s.value;return o(R,{title:`Memory of ${b(t)}`,wide:!0,children:[o(L,{...s}),u&&o(g,{children:[o("p",{class:"aside",
children:[e==="session"?o(g,{children:["Conversation ",o(F,{of:t})]}):is(e),u.content!==""&&o(g,{children:[", ",j(Nn(u.content))," of ",j(u.most_bytes)]})," ",u.
untrusted&&o(M,{look:"warn",children:"strangers may have written some of this"})]}),u.redacted&&o("p",{class:"note",children:"Secrets are hidden here. If you sa\
ve your edit, they're removed from the memory, too."}),u.content===""?o("p",{class:"none",children:"There's no memory here."}):o(Ye,{of:u.content,label:"The mem\
ory"}),i?o(Vl,{base:i,now:u,again:l,close:()=>a(null),saved:()=>c(`Saved the memory of ${b(t)}.`)}):o("div",{class:"after",children:[o(y,{onPress:()=>a(u),children:u.
content===""?"Write":"Edit"}),u.content!==""&&o(y,{look:"danger",onPress:()=>d.ask(u),children:"Erase…"})]})]}),d.dialog]})}function as(e,t){throw e instanceof
Y&&e.status===412&&t(),e}function Nn(e){return new TextEncoder().encode(e).length}function Vl({base:e,now:t,again:n,saved:r,close:s}){let[i,a]=f(e.content),[l,c]=f(
e.version),[d,u]=f(null),h=ce(),p=t.version!==l,m=Nn(i)>e.most_bytes,v=async()=>{u(null),await So(["memory",e.scope,e.owner],{content:i},l).catch(w=>as(w,n)),r()};
return o("form",{class:"editor",onSubmit:w=>{w.preventDefault(),v().catch(u)},children:[o("label",{class:"long",children:["New text",o("textarea",{ref:h,rows:12,
value:i,onInput:w=>a(w.currentTarget.value)})]}),p&&o("div",{class:"note error",role:"alert",children:[o("span",{children:"This memory changed while you were ed\
iting it. Its current text is above. Copy what you need from it."}),o(y,{onPress:()=>{c(t.version),u(null)},children:"Replace it with my text"})]}),m&&o("p",{class:"\
note error",role:"alert",children:["That's too long: ",j(Nn(i))," of ",j(e.most_bytes),"."]}),!p&&o(J,{error:d}),o("div",{class:"after",children:[o(y,{look:"mai\
n",disabled:p||m||!i.trim()||i===t.content,onPress:v,onError:u,children:"Save"}),o(y,{onPress:s,children:"Cancel"})]})]})}function ls({tell:e}){let n=N(r=>k(["asks"],{},r),"",60,["ask","ask_resolved"]).value?.asks.length??0;return E(()=>e(n),[n]),n===0?null:o("span",{class:"badge w\
arn",children:[n,o("span",{class:"away",children:" open"})]})}function Yt({caps:e}){return e.length===0?o("p",{class:"none",children:"No cap is in effect, because no model has a known price. See docs/models.md to set price\
s."}):o("ul",{class:"caps",children:e.map(t=>o("li",{children:o(Kl,{cap:t})},t.of+t.span))})}function Kl({cap:e}){let{most_microdollars:t,spent_microdollars:n,reserved_microdollars:r}=e,
s=Math.max(0,t-n-r),i=l=>t>0?100*l/t:100,a=i(n+r);return o(g,{children:[o("span",{class:"between",children:[o("span",{title:e.setting,children:[e.of==="all"?"Ev\
eryone":o(S,{of:e.of}),", ",e.span==="day"?"today":"this month"]}),o("span",{children:[je(n)," of ",je(t)]})]}),o(St,{spent:i(n),kept:i(r),look:a>=100?"over":a>=
80?"near":""}),o("span",{class:"aside",children:[s>0?`${je(s)} left`:"nothing left",r>0&&`, ${je(r)} reserved`]})]})}var Ne=720,Ce=120;function nt({title:e,times:t,series:n,says:r,lines:s,summary:i}){return o("figure",{class:"chart",children:[o("figcaption",{children:[o("h3",{
children:e}),o("ul",{class:"legend",children:n.map(a=>o("li",{children:[o("svg",{class:"key "+a.look+(s?" line":""),viewBox:"0 0 14 10","aria-hidden":"true",focusable:"\
false",children:s?o("path",{d:"M0 5H14"}):o("rect",{width:"14",height:"10"})}),a.name]},a.name))})]}),o(In,{label:`${e}. ${i}`,times:t,series:n,says:r,tells:a=>Gl(
n,a,r),lines:s}),o(ec,{title:e,times:t,series:n,says:r})]})}function In({label:e,times:t,series:n,says:r,tells:s,lines:i}){let a=Math.max(...i?n.flatMap(c=>c.values.
map(d=>d??0)):t.map((c,d)=>Yl(n,d))),l=i?o(Ql,{times:t,series:n,most:a}):o(Zl,{times:t,series:n,most:a});return o(g,{children:[o("span",{class:"aside",children:r(
a)}),o("svg",{class:"drawing",viewBox:`0 0 ${Ne} ${Ce}`,preserveAspectRatio:"none",role:"img","aria-label":e,children:[o("rect",{class:"rule",width:Ne,y:Ce-1,height:"\
1"}),l,t.map((c,d)=>o("rect",{class:"over",x:d*Ne/t.length,width:Ne/t.length,height:Ce,children:o("title",{children:[c,": ",s(d)]})},d))]}),o("span",{class:"bet\
ween aside",children:[o("span",{children:t[0]}),o("span",{children:t.length>1&&t.at(-1)})]})]})}function Yl(e,t){return e.reduce((n,r)=>n+(r.values[t]??0),0)}function Gl(e,t,n){
let r=e.flatMap(s=>s.values[t]?[`${s.name} ${n(s.values[t])}`]:[]);return r.length>0?r.join(", "):"nothing"}function Zl({times:e,series:t,most:n}){let r=Ne/e.length;
return o(g,{children:e.map((s,i)=>{let a=0;return t.map(l=>{let c=l.values[i]??0;if(c===0)return null;let d=Math.max(2,Ce*c/n);return a+=d,o("rect",{class:l.look,
x:i*r+r*.12,width:r*.76,y:Math.max(0,Ce-a),height:d},i+l.name)})})})}function Ql({times:e,series:t,most:n}){let r=Ne/e.length,s=i=>i.map((a,l)=>{if(a===null)return"";
let c=(l+.5)*r,d=Ce-2-(Ce-4)*a/n,u=i[l-1];return u==null&&(i[l+1]??null)===null?`M${c-r*.3} ${d}H${c+r*.3}`:`${u==null?"M":"L"}${c} ${d}`}).join("");return o(g,
{children:t.map(i=>o("path",{class:"line "+i.look,d:s(i.values)},i.name))})}function ec({title:e,times:t,series:n,says:r}){let s=t.map((a,l)=>({time:a,at:l})).filter(
({at:a})=>n.some(l=>l.values[a])),i=[{title:"Time",cell:a=>a.time},...n.map(a=>({title:a.name,cell:l=>a.values[l.at]?r(a.values[l.at]??0):"–",number:!0}))];return o(
"details",{children:[o("summary",{children:["Numbers",o("span",{class:"away",children:[" of ",e]})]}),o(z,{label:e,columns:i,rows:s,id:a=>String(a.at),empty:"No\
thing was counted."})]})}var Un=36e5,Ie=24*Un,Gt={day:{title:"the last 24 hours",by:"hour",back:23*Un,step:Un},month:{title:"the last 30 days",by:"day",back:29*Ie,step:Ie},quarter:{title:"\
the last 90 days",by:"day",back:89*Ie,step:Ie}},tc={hour:2e3,day:2e4};function us(){let[e,t]=f("day"),{by:n,back:r}=Gt[e],s=()=>new Date(Date.now()-r).toISOString(),
i=N(a=>k(["activity"],{by:n,since:s()},a),e,60,["turn_complete","turn_error"],tc[n]);return o(R,{title:"Over time",wide:!0,children:[o("div",{class:"filters",children:[
o("label",{children:["Show",o("select",{value:e,onChange:a=>t(a.currentTarget.value),children:Object.keys(Gt).map(a=>o("option",{value:a,children:Gt[a].title},a))})]}),
n==="day"&&o("span",{class:"aside",children:"Days are in UTC."})]}),o(L,{...i}),o("div",{class:"charts",children:[i.value&&o(oc,{of:i.value,span:e}),o(ac,{})]}),
i.value&&i.value.total.calls>0&&o(sc,{tools:i.value.total.tools,more:i.value.total.more_tools})]})}function nc(e,t){return t===Ie?ge(e):new Date(e).toLocaleString(
"en-US",{weekday:"short",hour:"2-digit",minute:"2-digit",hourCycle:"h23"})}function oc({of:e,span:t}){let{title:n,step:r}=Gt[t],{turns:s}=e.total,i=s.failed+s.given_up;
if(i+s.done+s.stopped+s.refused===0&&e.total.calls===0)return o("p",{class:"none",children:["No turn has ended in ",n,". When the agent answers, you'll see here\
 how many answers there are, how long they take, and how its tools do."]});let l=new Map(e.sums.map(p=>[Date.parse(p.at),p])),c=pn(Date.parse(e.since),Date.now(),
r),d=c.map(p=>nc(p,r)),u=p=>c.map(m=>{let v=l.get(m);return v?p(v):null}),h=[{name:"Answered",look:"c-main",values:u(p=>p.turns.done)},{name:"Failed",look:"c-ba\
d",values:u(p=>p.turns.failed)},{name:"Given up",look:"c-warn",values:u(p=>p.turns.given_up)},{name:"Stopped",look:"c-faint",values:u(p=>p.turns.stopped)},{name:"\
Refused by a limit",look:"c-good",values:u(p=>p.turns.refused)}];return o(g,{children:[o(nt,{title:"Answers and errors",times:d,series:h,says:C,summary:`In ${n}\
: ${$(s.done,"answer")}, ${C(i)} failed or given up, ${C(s.stopped)} stopped, ${C(s.refused)} refused.`}),o(cs,{title:"Until the first text",of:e,times:d,each:u,
pick:p=>p.first_token}),o(cs,{title:"Until the answer is complete",of:e,times:d,each:u,pick:p=>p.answer}),e.total.calls>0&&o(nt,{title:"Tool calls",times:d,says:C,
summary:`In ${n}: ${$(e.total.calls,"call")}, of which ${C(e.total.failed_calls)} didn't succeed.`,series:[{name:"Succeeded",look:"c-main",values:u(p=>p.calls-p.
failed_calls)},{name:"Didn't succeed",look:"c-bad",values:u(p=>p.failed_calls)}]})]})}function cs({title:e,of:t,times:n,each:r,pick:s}){let i=s(t.total);if(i.count===
0)return o("figure",{class:"chart",children:[o("figcaption",{children:o("h3",{children:e})}),o("p",{class:"none",children:"No answers yet."})]});let a=c=>r(d=>s(
d).count>0?s(d)[c]:null),l=[{name:"Half of them (p50)",look:"c-main",values:a("p50_ms")},{name:"95 in 100 (p95)",look:"c-warn dashed",values:a("p95_ms")}];return o(
nt,{title:e,times:n,series:l,says:Z,lines:!0,summary:`Half of ${$(i.count,"answer")} took up to ${Z(i.p50_ms)}, and 95 in 100 up to ${Z(i.p95_ms)}.`})}var rc={failed:"\
failed",denied:"denied",timeout:"timed out",cancelled:"canceled",unknown:"outcome unknown"};function sc({tools:e,more:t}){return o(g,{children:[o("h3",{children:"\
Tools"}),o(z,{label:"Tool calls and how they ended",columns:[{title:"Tool",cell:r=>o(S,{of:r.tool})},{title:"Calls",cell:r=>C(r.calls),number:!0},{title:"Succes\
s",cell:r=>o(ic,{of:r})},{title:"Other outcomes",cell:r=>Object.entries(r.outcomes).filter(([s,i])=>s!=="ok"&&i>0).map(([s,i])=>`${C(i)} ${rc[s]??s}`).join(", ")}],
rows:e,id:r=>r.tool,empty:"No tools were called."}),t&&o("p",{class:"aside",children:"Other tools were called, too, but less often."})]})}function ic({of:e}){let t=100*
(e.outcomes.ok??0)/e.calls;return o("span",{class:"success",children:[o("span",{children:[t===100?"100":Math.min(99,Math.floor(t)),"%"]}),o(St,{spent:t,look:t>=
90?"":t>=50?"near":"over"})]})}var Fn=["c-main","c-good","c-warn","c-bad"],ds=14;function ac(){let e=ge(Date.now()),t=ge(Date.now()-(ds-1)*Ie),n=N(a=>k(["usage"],
{by:"day,model",from:t,to:e},a),t,300);if(!n.value)return n.error?o(L,{...n}):null;let r=n.value.usage.filter(a=>a.microdollars>0);if(r.length===0)return null;let s=ht(
t,e),i=r.reduce((a,l)=>a+l.microdollars,0);return o(nt,{title:"Cost by day and model",times:s,series:lc(r,s),says:ne,summary:`${ne(i)} in ${ds} days, which are \
in UTC.`})}function lc(e,t){let n=new Map;for(let l of e)n.set(l.then??"",(n.get(l.then??"")??0)+l.microdollars);let r=[...n].sort((l,c)=>c[1]-l[1]).map(([l])=>l),
s=l=>t.map(c=>e.reduce((d,u)=>u.key===c&&l(u.then??"")?d+u.microdollars:d,0)||null),i=r.slice(0,Fn.length).map((l,c)=>({name:l||"unknown",look:Fn[c]??"",values:s(
d=>d===l)})),a=r.slice(Fn.length);return a.length>0&&i.push({name:"others",look:"c-faint",values:s(l=>a.includes(l))}),i}async function cc(e){let t=ge(Date.now()),[n,r,s]=await Promise.all([k(["status"],{},e),dc(e),k(["usage"],{by:"day",from:t,to:t},e)]);return{status:n,readiness:r,
usage:s}}async function dc(e){let t=await qe("/readyz",{signal:e});if(!t.ok&&t.status!==503)throw await Ee(t);return await t.json()}function ms({me:e}){let t=N(
cc,"",5,["turn_start","parked","turn_complete","turn_error","ask","ask_resolved","dead_letter","job","channel"]),n=t.value;return o(O,{title:"Overview",children:[
o(L,{...t}),n&&o(g,{children:[o("p",{class:"about",children:["Parley ",n.status.version," (",n.status.role,"), up for ",o(de,{at:n.status.started})," ",o(uc,{readiness:n.
readiness})]}),o(mc,{now:n,me:e}),o("div",{class:"blocks",children:[o(fc,{status:n.status,me:e}),o(gc,{status:n.status}),o(hc,{usage:n.usage}),o(bc,{status:n.status})]}),
o(us,{})]})]})}function uc({readiness:e}){let t=Object.entries(e.parts).filter(([,n])=>n!=="ok");return e.ready&&t.length===0?o(M,{look:"good",children:"ready"}):
o(g,{children:[o(M,{look:"bad",children:"not ready"}),t.map(([n,r])=>o("span",{class:"trouble",children:[" ",n,": ",r]},n))]})}function mc({now:e,me:t}){let{status:n,
usage:r}=e,s=n.topics.reduce((c,d)=>c+d.dead,0),i=n.channels.filter(c=>!c.up).length,a=r.usage.reduce((c,d)=>c+d.microdollars,0),l=n.asks?.count??0;return o("ul",
{class:"tiles",children:[o(Fe,{figure:C(n.turns?.count??0),what:"running"}),o(Fe,{figure:C(n.waiting?.count??0),what:"waiting"}),o(Fe,{figure:C(l),what:ze(l,"op\
en request"),look:l?"warn":"",to:t.may.approve?X("approvals"):void 0}),o(Fe,{figure:C(s),what:ze(s,"dead letter"),look:s?"bad":"",to:t.may.admin?X("dead-letters"):
void 0}),o(Fe,{figure:i?`${i} of ${n.channels.length}`:C(n.channels.length),what:`${ze(n.channels.length,"channel")} ${i?"down":"up"}`,look:i?"bad":""}),o(Fe,{figure:ne(
a),what:"today",to:X("usage")})]})}function Fe({figure:e,what:t,look:n,to:r}){let s=o(g,{children:[o("strong",{class:n,children:e})," ",o("span",{children:t})]});
return o("li",{children:r?o("a",{href:r,children:s}):o("div",{children:s})})}function pc(e){return e.turn?e.calls.length===0?o(g,{children:"calling the model"}):
o(g,{children:["running ",e.calls.map((t,n)=>o("span",{children:[n>0&&", ",o("code",{children:t.tool||"a tool"})," for ",o(de,{at:t.since})]},t.call))]}):o(g,{children:"\
starting or finishing"})}function ot({of:e,id:t,item:n,empty:r}){return!e||e.count===0?o("p",{class:"none",children:r}):o(g,{children:[o("ul",{class:"items",children:e.
list.map(s=>o("li",{children:n(s)},t(s)))}),e.count>e.list.length&&o("p",{class:"none",children:["and ",C(e.count-e.list.length)," more"]})]})}function fc({status:e,
me:t}){return o(g,{children:[o(R,{title:"Running now",children:o(ot,{of:e.turns,id:n=>n.session,empty:"Nothing is running. You'll see a turn here while the agen\
t works on an answer.",item:n=>o(g,{children:[o(F,{of:n.session}),o("span",{class:"aside",children:[pc(n),"; ",o(de,{at:n.since})," so far",n.person&&o(g,{children:[
", ",o(S,{of:n.person})]})," ",t.may.admin&&o(K,{of:n.turn})]})]})})}),o(R,{title:"Waiting for a worker",children:o(ot,{of:e.waiting,id:n=>n.session,empty:"No m\
essages are waiting.",item:n=>o(g,{children:[o(F,{of:n.session}),o("span",{class:"aside",children:[$(n.messages,"message"),", the first one ",o(T,{at:n.since}),
n.next&&o(g,{children:["; next try ",o(T,{at:n.next})]})," ",t.may.admin&&o(K,{of:n.session})]})]})})}),o(R,{title:"Waiting for people",children:o(ot,{of:e.asks,
id:n=>n.id,empty:"No open requests.",item:n=>o(g,{children:[t.may.approve?o("a",{href:X("approvals",n.id),children:n.tool||n.kind}):o("strong",{children:n.tool||
n.kind}),o("span",{class:"aside",children:["for ",o(S,{of:n.person}),", asked ",o(T,{at:n.since}),"; expires ",o(T,{at:n.expires}),"; ",n.decides.join(" or "),"\
 can answer"]})]})})}),o(R,{title:"Jobs",children:o(ot,{of:e.jobs,id:n=>n.id,empty:"No background commands are running.",item:n=>o(g,{children:[o(F,{of:n.session}),
o("span",{class:"aside",children:[o("code",{children:n.tool})," for ",o(de,{at:n.since}),"; times out ",o(T,{at:n.deadline})]})]})})})]})}function gc({status:e}){
let t=e.topics.filter(n=>n.dead>0);return o(R,{title:"Channels",children:[e.channels.length===0&&o("p",{class:"none",children:"No channels are configured. Run p\
arley onboard to add one."}),o("ul",{class:"items",children:e.channels.map(n=>o("li",{children:[o("span",{children:[o("strong",{children:n.name})," ",n.up?o(M,{
look:"good",children:"up"}):o(M,{look:"bad",children:"down"}),n.since&&o("span",{class:"aside",children:[" for ",o(de,{at:n.since})]})]}),!n.up&&n.reason&&o("sp\
an",{class:"trouble",children:n.reason}),(n.platform||n.bot)&&o("span",{class:"aside",children:[n.platform,n.bot&&o(g,{children:[" as ",o(S,{of:n.bot})]})]}),n.
last_in&&o("span",{class:"aside",children:["last message from people ",o(T,{at:n.last_in})]}),n.last_out&&o("span",{class:"aside",children:["last message sent ",
o(T,{at:n.last_out})]})]},n.name))}),t.length>0&&o(g,{children:[o("h3",{children:"Dead letters"}),o("ul",{class:"items",children:t.map(n=>o("li",{children:o("sp\
an",{children:[o(S,{of:n.topic}),": ",$(n.dead,"dead letter")]})},n.topic))})]})]})}function hc({usage:e}){let t=e.usage.reduce((r,s)=>r+s.calls,0),n=e.usage.reduce(
(r,s)=>r+s.unpriced,0);return o(R,{title:"Cost",children:[o("p",{class:"none",children:[t===0?"No model calls today (UTC).":`${$(t,"model call")} today (UTC).`,
n>0&&` The price of ${C(n)} is unknown.`]}),o(Yt,{caps:e.caps})]})}function bc({status:e}){return o(R,{title:"Due next",children:o(ot,{of:e.schedules,id:t=>t.id,
empty:"Nothing is scheduled.",item:t=>o(g,{children:[o(T,{at:t.next}),o("span",{class:"aside",children:["for ",o(S,{of:t.person})," in ",o(F,{of:t.session})]})]})})})}var vc={owner:"owner",admitted:"has access",asks:"wants access"};function ps(){let e=Q(),t=N(s=>k(["pairings"],{},s),"",10),n=async s=>{let i=await H(["pairings"],
{code:s});e.say(`${rt(i)} now has access.`),t.again()},r=oe(s=>({title:s.state==="asks"?"Refuse access?":"Revoke access?",confirm:s.state==="asks"?"Refuse":"Rev\
oke",text:o(g,{children:[rt(s)," (",o(S,{of:s.person}),") ",s.state==="asks"?"will need to ask for access again.":"can't talk to the agent anymore, unless someo\
ne gives them access again."]}),act:async()=>{await G(["pairings",s.person]),e.say(s.state==="asks"?`You refused ${rt(s)} access.`:`${rt(s)} no longer has acces\
s.`),t.again()}}));return o(O,{title:"People",done:e,about:"People who got access with a code, people who want it, and people named in the configuration.",children:[
o(wc,{admit:n,outcome:e}),o(V,{read:t,rows:s=>s.pairings,label:"People who have access or want it",id:s=>s.person,empty:'Nobody has access or wants it yet. Peop\
le who write to the agent on a channel with access = "pairing" get a code and show up here.',columns:[{title:"Person",cell:s=>o(g,{children:[s.name&&o(g,{children:[
o("strong",{children:o(S,{of:s.name})}),o("br",{})]}),o("span",{class:"aside",children:o(S,{of:s.person})})]})},{title:"State",cell:s=>o(M,{look:s.state==="asks"?
"warn":"good",children:vc[s.state]??s.state})},{title:"Linked with",cell:s=>s.linked?.map(i=>o("div",{children:o(S,{of:i})},i))},{title:"Code",cell:s=>s.code&&o(
"code",{children:s.code})},{title:"Since",cell:s=>o(T,{at:s.at})},{title:"Actions",cell:s=>o(y,{look:"danger",onPress:()=>r.ask(s),label:(s.state==="asks"?"Refu\
se ":"Revoke ")+rt(s),children:s.state==="asks"?"Refuse…":"Revoke…"})}]}),o(kc,{}),o(Sc,{}),r.dialog]})}function rt(e){return b(e.name||e.person)}function wc({
admit:e,outcome:t}){let[n,r]=f(""),s=async()=>{await e(n.trim()),r("")};return o("form",{class:"filters",onSubmit:i=>{i.preventDefault(),n.trim()&&s().catch(t.fail)},
children:[o("label",{children:["Code that the person got from the agent",o("input",{value:n,autocomplete:"off",spellcheck:!1,onInput:i=>r(i.currentTarget.value)})]}),
o(y,{look:"main",disabled:!n.trim(),onPress:s,onError:t.fail,children:"Give access"})]})}var yc={owners:"owner",approvers:"approver",allow_from:"has access"};function kc(){
let e=B(t=>k(["config"],{},t),"");return o(R,{title:"In the configuration",wide:!0,children:o(V,{read:e,rows:t=>t.settings.flatMap(_c),label:"People named in th\
e configuration",id:t=>t.person+" "+t.role,empty:"Nobody is named in the configuration.",columns:[{title:"Person",cell:t=>o(S,{of:t.person})},{title:"Role",cell:t=>o(
M,{look:"good",children:t.role})},{title:"From",cell:t=>o(S,{of:t.from})}]})})}function _c({key:e,value:t,from:n}){let[,r,s=""]=/^channels\.(.+)\.([a-z_]+)$/.exec(
e)??[],i=yc[s];return r&&i&&Array.isArray(t)?t.map(a=>({person:`${r}:${String(a)}`,role:i,from:n})):[]}function Sc(){let e=B(t=>k(["chats"],{},t),"");return o(R,
{title:"Chats",wide:!0,children:o(V,{read:e,rows:t=>t.chats,label:"Chats where people talked to the agent",id:t=>t.address+" "+t.session,empty:"Nobody has talke\
d to the agent yet.",columns:[{title:"Chat",cell:t=>o(g,{children:[t.name&&o(g,{children:[o("strong",{children:o(S,{of:t.name})}),o("br",{})]}),o("span",{class:"\
aside",children:o(S,{of:t.address})})]})},{title:"Kind",cell:t=>t.group?"group":"private"},{title:"Session",cell:t=>o(F,{of:t.session})},{title:"Since",cell:t=>o(
T,{at:t.since})},{title:"Messages",cell:t=>o(K,{of:t.address})}]})})}function fs(){let{value:e,error:t,again:n}=B(a=>k(["config"],{},a),"");if(t)return o(J,{error:t,again:n});let r=a=>Tc(e?.settings.find(l=>l.key==="heartbeat."+a)?.
value),[s,i]=[r("every"),r("agent")];return s?o("p",{class:"aside heartbeat",children:["Heartbeat: every ",b(s),", ",o(S,{of:i})," goes through ",o(S,{of:r("fil\
e")})," and tells ",o(S,{of:r("to")}),". ",o(xc,{agent:i})]}):null}function xc({agent:e}){let t=N(r=>k(["sessions"],{agent:e,channel:"heartbeat",order:"desc",limit:5},
r),e,60,["turn_complete","turn_error"]),n=t.value?.sessions[0];return t.error?o(g,{children:"Couldn't load the last beat."}):t.value?n?o(g,{children:["Last beat\
: ",o(T,{at:n.updated}),", in ",o(F,{of:n.key})]}):o(g,{children:"No beat yet."}):o(g,{children:"Loading the last beat…"})}function Tc(e){return Array.isArray(
e)?e.join(", "):typeof e=="string"?e:""}function Wn({of:e,done:t,close:n}){let[r,s]=f(""),[i,a]=f(""),[l,c]=f(e?.when??""),[d,u]=f(e?.time_zone??Intl.DateTimeFormat().resolvedOptions().timeZone),[h,p]=f(
e?.text??""),[m]=f(()=>crypto.randomUUID()),[v,w]=f(null),_=ce(),P=async()=>{w(null);let x={when:l.trim(),text:h.trim(),time_zone:d.trim()};e?await gt(["schedul\
es",e.id],Ec(e,x)):await H(["schedules"],{...x,session:r.trim(),...i.trim()?{person:i.trim()}:{}},m),t()};return o(R,{title:e?"Edit schedule":"New schedule",wide:!0,
box:_,children:o("form",{class:"editor",onSubmit:x=>{x.preventDefault(),P().catch(w)},children:[!e&&o(Pc,{session:r,person:i,setSession:s,setPerson:a}),o("label",
{children:["When",o("input",{value:l,required:!0,placeholder:"0 9 * * *",spellcheck:!1,onInput:x=>c(x.currentTarget.value)}),o("span",{class:"aside",children:"F\
or example: in 2h, every 1d, 2030-01-31 09:00, or a cron expression"})]}),o("label",{children:["Time zone",o("input",{value:d,spellcheck:!1,onInput:x=>u(x.currentTarget.
value)})]}),o("label",{class:"long",children:["Message to the agent",o("textarea",{rows:3,required:!0,maxLength:4e3,value:h,onInput:x=>p(x.currentTarget.value)})]}),
o(J,{error:v}),o("div",{class:"after",children:[o(y,{look:"main",disabled:!l.trim()||!h.trim()||!e&&!r.trim(),onPress:P,onError:w,children:"Save"}),o(y,{onPress:n,
children:"Close"})]})]})})}function Ec(e,t){let n={};return t.when!==e.when&&(n.when=t.when),t.text!==e.text&&(n.text=t.text),t.time_zone!==e.time_zone&&(n.time_zone=
t.time_zone),n}function Pc({session:e,person:t,setSession:n,setPerson:r}){let s=B(i=>k(["chats"],{},i),"");return o(g,{children:[o("label",{children:["Session",
o("input",{value:e,required:!0,list:"sessions-known",placeholder:"main:telegram:42",spellcheck:!1,onInput:i=>n(i.currentTarget.value)}),o("datalist",{id:"sessio\
ns-known",children:s.value?.chats.map(i=>o("option",{value:i.session,children:i.name??i.address},i.session))})]}),o("label",{children:["On behalf of",o("input",
{value:t,placeholder:"telegram:42",spellcheck:!1,onInput:i=>r(i.currentTarget.value)})]})]})}var Cc={done:"good",failed:"bad",running:"warn"};function gs({of:e,why:t,close:n}){let r=N(s=>k(["schedules",e.id],{limit:20},s),e.id,20,["turn_start","turn_com\
plete","turn_error"]);return o(Oe,{title:"Runs",close:n,children:o(V,{read:r,rows:s=>s.runs,label:`Turns that the schedule ${e.id} started, newest first`,id:s=>s.
id,empty:"No runs yet.",columns:[{title:"Started",cell:s=>o(T,{at:s.begun})},{title:"Due",cell:s=>s.due?o(T,{at:s.due}):"started manually"},{title:"State",cell:s=>o(
g,{children:[o(M,{look:Cc[s.state],children:s.state})," ",s.code]})},{title:"Turn",cell:s=>t?o(K,{of:s.id}):o("code",{children:s.turn})}]})})}function hs({me:e}){let t=Q(),[n,r]=f(null),s=N(c=>k(["schedules"],{limit:200},c),"",20,["turn_start","turn_complete"]),i=c=>{t.say(c),r(null),s.again()},a={pause:async c=>{
await gt(["schedules",c.id],{paused:!c.paused}),i(c.paused?"Schedule resumed.":"Schedule paused. It won't catch up on the runs that it misses.")},run:async c=>{
let{id:d}=await H(["schedules",c.id,"run"],{},crypto.randomUUID());i(`Running now as ${d}.`)}},l=oe(c=>({title:"Cancel this schedule?",confirm:"Cancel schedule",
text:o(g,{children:["The agent won't get “",b(c.text),"” anymore."]}),act:async()=>{await G(["schedules",c.id]),i("Schedule canceled.")}}));return o(O,{title:"\
Schedules",done:t,about:e.may.admin?"What the agent does later, once or regularly.":"What the agent does later for you, once or regularly. To change it, ask the\
 agent.",children:[e.may.admin&&n?.what!=="new"&&o("div",{class:"filters",children:o(y,{look:"main",onPress:()=>r({what:"new"}),children:"New schedule"})}),n?.what===
"new"&&o(Wn,{done:()=>i("Schedule created."),close:()=>r(null)}),e.may.admin&&o(fs,{}),o(L,{...s}),s.value&&o(Ac,{schedules:s.value.schedules,mayChange:e.may.admin,
change:c=>r({what:"change",of:c}),runs:c=>r({what:"runs",of:c}),pause:a.pause,run:a.run,cancel:l.ask,fail:t.fail}),s.value?.next&&o("p",{class:"none after",children:"\
There are more schedules than these."}),n?.what==="change"&&o(Wn,{of:n.of,done:()=>i("Schedule saved."),close:()=>r(null)},n.of.id),n?.what==="runs"&&o(gs,{of:n.
of,why:e.may.admin,close:()=>r(null)},n.of.id),l.dialog]})}function Ac({schedules:e,mayChange:t,change:n,runs:r,pause:s,run:i,cancel:a,fail:l}){return o(z,{label:"\
Schedules, next due first",rows:e,id:c=>c.id,empty:"Nothing is scheduled. Ask the agent to do something later, such as every morning"+(t?", or create a schedule\
 here.":"."),columns:[{title:"Next",cell:c=>c.next?o(T,{at:c.next}):o(M,{look:"warn",children:c.paused?"paused":"finished"})},{title:"When",cell:c=>o(g,{children:[
o("code",{children:b(c.when)}),o("br",{}),o("span",{class:"aside",children:c.time_zone})]})},{title:"Message",cell:c=>o("span",{class:"saying",children:b(c.text)})},
{title:"For",cell:c=>o(g,{children:[o(S,{of:c.person}),o("br",{}),o(F,{of:c.session})]})},{title:"Actions",cell:c=>o("div",{class:"rowactions",children:[t&&o(y,
{onPress:()=>i(c),onError:l,label:`Run now: ${c.id}`,children:"Run now"}),t&&o(y,{onPress:()=>s(c),onError:l,label:`${c.paused?"Resume":"Pause"}: ${c.id}`,children:c.
paused?"Resume":"Pause"}),t&&o(y,{onPress:()=>n(c),label:`Edit: ${c.id}`,children:"Edit"}),o(y,{onPress:()=>r(c),label:`Runs: ${c.id}`,children:"Runs"}),t&&o(y,
{look:"danger",onPress:()=>a(c),label:`Cancel: ${c.id}`,children:"Cancel…"})]})}]})}var bs=500,Mc=200,Jc={debug:"Everything",info:"Info and above",warn:"Warnings and errors",error:"Errors"};function vs(){let[e,t]=f("info"),[n,r]=f(!1),s=Lc(e,n);
return o(O,{title:"Log",about:"What this server logs about its work. It doesn't contain what people or models said. If there are several servers, each has its o\
wn log.",children:[o("div",{class:"filters",children:[o("label",{children:["Level",o("select",{value:e,onChange:i=>t(i.currentTarget.value),children:Object.entries(
Jc).map(([i,a])=>o("option",{value:i,children:a},i))})]}),o(y,{onPress:()=>r(!n),children:n?"Follow":"Pause"}),o("span",{role:"status",class:"aside",children:n?
"Paused.":s.live?"Following.":s.why?"":"Connecting…"})]}),o(J,{error:s.why&&new Error(s.why)}),o(z,{label:"Lines of the log, newest first",rows:s.lines,id:i=>String(
i.id),empty:"No lines of this level yet.",columns:[{title:"Time",cell:i=>o(vt,{at:i.at})},{title:"Level",cell:i=>o(Bc,{of:i.level})},{title:"Message",cell:i=>o(
"span",{class:"name",children:b(i.message)})},{title:"Details",cell:i=>o(Oc,{of:i.fields})}]})]})}function Bc({of:e}){return o(M,{look:e==="ERROR"?"bad":e==="WA\
RN"?"warn":void 0,children:e.toLowerCase()})}function Oc({of:e}){let t=typeof e.turn=="string"?e.turn:void 0,n=Object.entries(e).filter(([,r])=>r!=="").map(([r,
s])=>r+"="+(typeof s=="string"?s:JSON.stringify(s)));return o(g,{children:[o("span",{class:"name aside",children:b(n.join(" "))})," ",o(K,{of:t})]})}function Lc(e,t){
let[n,r]=f([]),[s,i]=f({live:!1,why:""}),a=A([]);return E(()=>{if(t)return;let l=new AbortController,c=!1,d,u=()=>{d=void 0;let[m,v]=[a.current.reverse(),c];a.current=
[],c=!1,r(w=>(v?m:[...m,...w]).slice(0,bs))},p={event:(m,v)=>{m==="reset"?(c=!0,a.current=[]):m==="line"&&(a.current.push(v),a.current.length>bs&&a.current.shift()),
d??=setTimeout(u,Mc)},state:(m,v="")=>i({live:m==="live",why:v})};return Mt(te(["logs","events"],{level:e}),p,l.signal),()=>{l.abort(),clearTimeout(d),a.current=
[],i({live:!1,why:""})}},[e,t]),{lines:n,...s}}function ws(e){return e.map(t=>t.map(Xc).join(",")+`\r
`).join("")}function Xc(e){if(typeof e=="number"||/^\d+(\.\d+)?$/.test(e))return String(e);let t=/^[=+\-@\t\r]/.test(e)?"'"+e:e;return/[",\r\n]/.test(t)?'"'+t.replaceAll(
'"','""')+'"':t}function ys(e,t){let n=URL.createObjectURL(new Blob([t],{type:"text/csv;charset=utf-8"})),r=document.createElement("a");r.href=n,r.download=e,r.
click(),setTimeout(()=>URL.revokeObjectURL(n),1e4)}var Hn={day:"Day",model:"Model",person:"Person",agent:"Agent",session:"Session"};function qn(){return ge(Date.now())}function ks(){return qn().slice(0,8)+"01"}function Ss(){
let[e,t]=f(ks),[n,r]=f(qn),[s,i]=f("model"),a=e+" "+n,l=B(c=>k(["usage"],{by:"day",from:e,to:n},c),a);return o(O,{title:"Usage",about:"What models used and cost\
. Days are in UTC.",children:[o("form",{class:"filters",onSubmit:c=>c.preventDefault(),children:[o("label",{children:["From",o("input",{type:"date",value:e,max:n,
onChange:c=>t(c.currentTarget.value||ks())})]}),o("label",{children:["To",o("input",{type:"date",value:n,min:e,onChange:c=>r(c.currentTarget.value||qn())})]})]}),
o(L,{...l}),l.value&&o(g,{children:[o(R,{title:"What's left now",children:o(Yt,{caps:l.value.caps})}),o(R,{title:"By day",wide:!0,children:[o($c,{days:l.value.usage,
from:e,to:n}),o(xs,{by:"day",sums:l.value.usage,span:a})]}),o(Dc,{by:s,choose:i,from:e,to:n}),o("p",{class:"aside",children:["Prices as of ",l.value.prices,"."]})]})]})}
function $c({days:e,from:t,to:n}){let r=e.some(p=>p.microdollars>0),s=r?ne:p=>C(p)+" tokens",i=ht(t,n),a=i.map(p=>e.find(m=>m.key===p)),l=a.map(p=>p?r?p.microdollars:
_s(p):0),c=Math.max(0,...l);if(c===0)return null;let d=p=>{let m=a[p];return m?`${r?ne(m.microdollars)+", ":""}${$(m.calls,"call")}, ${C(_s(m))} tokens`:"nothin\
g"},u=l.indexOf(c),h=`${r?"Cost":"Tokens"} per day from ${t} to ${n}. Highest: ${i[u]}: ${d(u)}. The table below lists all days.`;return o("div",{class:"plot",children:o(
In,{label:h,times:i,series:[{name:"",look:"c-main",values:l}],says:s,tells:d})})}var _s=e=>e.input+e.output;function Dc({by:e,choose:t,from:n,to:r}){let s=n+" "+
r,i=B(a=>k(["usage"],{by:e,from:n,to:r},a).then(l=>({by:e,sums:l.usage})),e+" "+s);return o(R,{title:"By "+e,wide:!0,children:[o("div",{class:"filters",children:o(
"label",{children:["Group by",o("select",{value:e,onChange:a=>t(a.currentTarget.value),children:Object.keys(Hn).filter(a=>a!=="day").map(a=>o("option",{value:a,
children:Hn[a].toLowerCase()},a))})]})}),o(L,{...i}),i.value&&i.value.by===e&&o(xs,{by:e,sums:i.value.sums,span:s})]})}function Rc(e,t){return e.unpriced===e.calls&&
e.calls>0?"unknown":t(e.microdollars)+(e.unpriced+e.estimated>0?" *":"")}function xs({by:e,sums:t,span:n}){let r=Xo(t.map(c=>c.microdollars)),s=[{title:Hn[e],cell:c=>b(
c.key||"(erased)")},{title:"Calls",cell:c=>C(c.calls),number:!0},{title:"Input",cell:c=>C(c.input),number:!0},{title:"Cached",cell:c=>C(c.cached),number:!0},{title:"\
Output",cell:c=>C(c.output),number:!0},{title:"Reasoning",cell:c=>C(c.reasoning),number:!0},{title:"Cost",cell:c=>Rc(c,r),number:!0}],i=t.reduce((c,d)=>c+d.unpriced,
0),a=t.reduce((c,d)=>c+d.estimated,0),l=()=>ys(`parley-usage-by-${e}-${n.replace(" ","-to-")}.csv`,Nc(e,t));return o(g,{children:[o(z,{label:`Usage by ${e}; inp\
ut, cached, output and reasoning are tokens`,columns:s,rows:t,id:c=>c.key,empty:"No model calls in this period."}),i>0&&o("p",{class:"aside",children:["* The co\
st of ",$(i,"call")," is unknown. See docs/models.md to set prices."]}),a>0&&o("p",{class:"aside",children:["* The tokens of ",$(a,"call")," are estimates, beca\
use the provider didn't count them."]}),t.length>0&&o("div",{class:"after",children:o(y,{onPress:l,label:`Download CSV: usage by ${e}`,children:"Download CSV"})})]})}
function Nc(e,t){return ws([[e,"calls","input_tokens","cached_tokens","output_tokens","reasoning_tokens","dollars","calls_estimated","calls_unpriced"],...t.map(
r=>[r.key,r.calls,r.input,r.cached,r.output,r.reasoning,(r.microdollars/1e6).toFixed(6),r.estimated,r.unpriced])])}function Ts({rest:e}){let t=e[0]??"";return o(O,{title:"Why",about:"What happened to a message: who let it in, what ran, what people were asked, and whether the\
 answer was sent. It never shows what anyone said.",children:[o(Ic,{id:t},t),t&&o(Fc,{id:t})]})}function Ic({id:e}){let[t,n]=f(e),r=()=>Be("why",t.trim());return o(
"form",{class:"filters",onSubmit:s=>{s.preventDefault(),t.trim()&&r()},children:[o("label",{class:"long",children:["Message, session, chat or person",o("input",
{value:t,placeholder:"telegram:42",spellcheck:!1,onInput:s=>n(s.currentTarget.value)})]}),o(y,{look:"main",disabled:!t.trim(),onPress:r,children:"Show"})]})}function Fc({
id:e}){let t=B(r=>k(["why",e],{},r).then(s=>({id:e,told:s})),e),n=t.value?.id===e?t.value.told:void 0;return o("div",{"aria-live":"polite",children:[o(L,{value:n,
error:t.error,again:t.again}),n&&n.about!=="message"&&n.messages.length>0&&o("p",{class:"aside",children:["Latest messages of the ",n.about," ",b(n.id),":"]}),n?.
messages.map(r=>o(Hc,{of:r},r.message)),n&&n.messages.length===0&&o("p",{class:"none",children:["No messages found for ",b(n.id),"."]}),n?.hints&&n.hints.length>
0&&o("ul",{class:"hints",children:n.hints.map((r,s)=>o("li",{children:o(kt,{text:r})},s))})]})}var Uc=new Set(["answered","done"]),Wc=new Set(["running","waitin\
g","waiting_for_people","sending"]);function Hc({of:e}){let t=Uc.has(e.outcome)?"good":Wc.has(e.outcome)?"warn":"bad",n="story-"+e.message;return o("article",{class:"\
story","aria-labelledby":n,children:[o("h2",{id:n,children:[o("span",{class:"name",children:b(e.message)})," ",o(M,{look:t,children:e.outcome.replaceAll("_"," ")})]}),
o("p",{class:"aside",children:[e.steps[0]?.at&&o(T,{at:e.steps[0].at}),e.session&&o(g,{children:[" in ",o(F,{of:e.session})]})]}),o("ol",{class:"steps",children:e.
steps.map((r,s)=>o("li",{children:[o("span",{class:"at",children:r.at&&o(vt,{at:r.at})})," ",o("span",{children:o(kt,{text:r.text})})]},s))}),o("p",{children:[o(
"strong",{children:o(kt,{text:e.says})})," ",e.outcome==="waiting_for_people"&&o("a",{href:X("approvals"),children:"See open requests"})]})]})}function Es(){return[{name:"chat",title:"Chat",group:"Conversations",may:e=>e.may.agent||e.may.own||e.may.read,show:Nr},{name:"approvals",title:"Approvals",group:"\
Conversations",may:e=>e.may.approve||e.may.agent,show:Hr,beside:ls},{name:"people",title:"People",group:"Conversations",may:e=>e.may.admin,show:ps},{name:"overv\
iew",title:"Overview",group:"Now",may:e=>e.may.read,show:ms},{name:"dead-letters",title:"Dead letters",group:"Now",may:e=>e.may.admin,show:Kr},{name:"schedules",
title:"Schedules",group:"Now",may:e=>e.may.admin||e.may.own,show:hs},{name:"jobs",title:"Jobs",group:"Now",may:e=>e.may.read,show:Zr},{name:"agents",title:"Agen\
ts",group:"Setup",may:e=>e.may.read,show:Fr},{name:"mcp",title:"MCP servers",group:"Setup",may:e=>e.may.admin,show:os},{name:"configuration",title:"Configuratio\
n",group:"Setup",may:e=>e.may.admin,show:Vr},{name:"memory",title:"Memory",group:"Setup",may:e=>e.may.admin,show:ss},{name:"browsers",title:"Browsers",group:"Se\
tup",may:()=>!0,show:zr},{name:"usage",title:"Usage",group:"Records",may:e=>e.may.read,show:Ss},{name:"audit",title:"Audit",group:"Records",may:e=>e.may.admin,show:qr},
{name:"why",title:"Why",group:"Records",may:e=>e.may.admin,show:Ts},{name:"doctor",title:"Doctor",group:"Records",may:e=>e.may.admin,show:Gr},{name:"log",title:"\
Log",group:"Records",may:e=>e.may.admin,show:vs}]}function Ps(){let[e,t]=f({state:"asking"}),[n,r]=f(0);switch(E(()=>{_o(()=>t(s=>s.state==="in"?{state:"out",error:new Error("You've been signed out. Sign in aga\
in.")}:s)),Jo(Mo()).then(s=>t(s?{state:"in",me:s}:{state:"out"}),s=>t({state:"out",error:s}))},[n]),E(()=>{let s=()=>{location.hash.startsWith("#code=")&&r(i=>i+
1)};return addEventListener("hashchange",s),()=>removeEventListener("hashchange",s)},[]),e.state){case"asking":return o("main",{class:"signin",children:o(se,{})});case"\
out":return o(Oo,{error:e.error,onDone:s=>t({state:"in",me:s})},n);case"in":return o(qc,{me:e.me,onSignOut:()=>t({state:"out"})})}}function qc({me:e,onSignOut:t}){
let n=To(),r=Eo(),[s,i]=f(null),a=Es().filter(d=>d.may(e)),l=a.find(d=>d.name===n.view)??a[0],c=async()=>{await G(["sign-ins","current"]),t()};return E(()=>{document.
title=l?`${l.title} – Parley`:"Parley"},[l]),o("div",{class:"frame",children:[o("a",{class:"skip",href:"#content",onClick:d=>{d.preventDefault(),document.getElementById(
"content")?.focus()},children:"Skip to content"}),o("header",{class:"top",children:[o(Po,{menu:r}),o("strong",{class:"brand",children:"Parley"}),o("span",{class:"\
here","aria-hidden":"true",children:l?.title}),o("span",{class:"who",title:"You're signed in with this name",children:e.name}),o(y,{look:"quiet",onPress:c,onError:i,
children:"Sign out"})]}),o(J,{error:s}),o("div",{class:"below",children:[o(Co,{all:a,view:l,menu:r}),o("main",{id:"content",class:"content",tabIndex:-1,children:l?
o(zn,{children:o(l.show,{me:e,rest:l.name===n.view?n.rest:[]})},l.name):o("p",{class:"empty",children:"Your token can't see anything here. It needs the agent, o\
wn or read scope."})})]})]})}var zn=class extends ee{componentDidCatch(t){console.error(t),this.setState({error:t})}render(){return this.state.error?o(J,{error:this.
state.error,again:()=>this.setState({error:void 0})}):this.props.children}};var Cs=document.getElementById("page");Cs&&lo(o(Ps,{}),Cs);
